/** JSON Pointers (RFC 6901): splitting, joining, and the way up. */

/** @param {string} pointer @returns {string[]} the unescaped reference tokens */
export function tokens(pointer) {
  return pointer === "" ? [] : pointer.slice(1).split("/").map(unescape);
}

/** @param {string} pointer @param {string | number} token @returns {string} the pointer one level down */
export function join(pointer, token) {
  return `${pointer}/${String(token).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** @param {string} pointer any pointer but the root's @returns {string} the pointer one level up */
export function parent(pointer) {
  return pointer.slice(0, pointer.lastIndexOf("/"));
}

/** @param {string} pointer any pointer but the root's @returns {string} its last reference token */
export function lastToken(pointer) {
  return unescape(pointer.slice(pointer.lastIndexOf("/") + 1));
}

/** @param {string} token */
function unescape(token) {
  return token.replaceAll("~1", "/").replaceAll("~0", "~");
}
