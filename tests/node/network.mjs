/** What stands between client and service in tests: a proxy that cuts and stalls connections, and servers of a few lines. */

import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { connect, createServer } from "node:net";

async function listening(server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${server.address().port}`;
}

/** A TCP proxy in front of `target`; `limit()` says after how many bytes to the client a connection is cut. */
export class Proxy {
  requests = [];
  sockets = new Set();
  limit = () => Infinity;
  stalls = () => false;

  static async before(target) {
    const proxy = new Proxy();
    const { hostname, port } = new URL(target);
    proxy.server = createServer((socket) => proxy.#serve(socket, connect(Number(port), hostname)));
    proxy.url = await listening(proxy.server);
    return proxy;
  }

  #serve(client, service) {
    this.sockets.add(client);
    let left = this.limit();
    const stalled = this.stalls();
    client.on("data", (data) => {
      const [line] = data.toString("latin1").split("\r\n");
      if (/^[A-Z]+ \//.test(line)) this.requests.push(line.replace(/ HTTP.*/, ""));
      service.write(data);
    });
    service.on("data", (data) => {
      if (stalled) return;
      const whole = data.length < left;
      client.write(whole ? data : data.subarray(0, left), () => whole || client.destroy());
      left -= data.length;
    });
    for (const [one, other] of [[client, service], [service, client]]) {
      one.on("error", () => {});
      one.on("end", () => other.end());
      one.on("close", () => {
        this.sockets.delete(one);
        other.destroy();
      });
    }
  }

  cut() {
    for (const socket of this.sockets) socket.destroy();
  }

  close() {
    this.cut();
    this.server.close();
  }
}

const servers = [];

/** A server that answers every request with `answer(request, response)`, until `closeServers`. */
export async function answering(answer) {
  const server = createHttpServer(answer);
  servers.push(server);
  return { url: await listening(server) };
}

/** Whatever a test came to: with a server that listens, its process would not end. */
export function closeServers() {
  for (const server of servers.splice(0)) (server.closeAllConnections(), server.close());
}

/** One server-sent event. */
export function frame(seq, event, data) {
  return `id: r:${seq}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
