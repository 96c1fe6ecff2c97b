"""What one replica asks of another through Redis: to cancel, steer or edit a run that the other generates."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from redis.asyncio import Redis
from redis.exceptions import RedisError

from api.futures import stop
from api.redis_keys import Keys
from api.redis_writer import RETRY_S
from constrained import errors
from constrained.errors import ConstrainedError, InternalError, LogUnavailableError, RequestError

logger = logging.getLogger(__name__)

ANSWER_S = 10
REPLY_TTL_S = 60

Obey = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


class Commands:
    """Asks other replicas, and carries out by `obey` what they ask of this one."""

    def __init__(self, redis: Redis, keys: Keys, owner: str, obey: Obey) -> None:
        self._redis = redis
        self._keys = keys
        self._owner = owner
        self._obey = obey
        self._obeying: set[asyncio.Task[None]] = set()
        self._listening = asyncio.create_task(self._listen_for_ever())

    async def ask(self, owner: str, run: str, command: dict[str, Any]) -> dict[str, Any]:
        """The answer of the replica `owner`; raises what it raised, `LogUnavailableError` where it does not answer."""
        identifier = uuid4().hex
        message = json.dumps({"id": identifier, "run": run, "command": command})
        try:
            num_listeners = await self._redis.publish(self._keys.commands(owner), message)
            answer: Any = await self._redis.blpop([self._keys.reply(identifier)], ANSWER_S) if num_listeners else None
        except (RedisError, OSError) as error:
            raise LogUnavailableError("The event log does not answer; try again") from error
        if not answer:
            raise LogUnavailableError(f"The process that generates the run {run!r} does not answer; try again")
        reply = json.loads(answer[1])
        if "error" in reply:
            raise _error(**reply["error"])
        return dict(reply["answer"])

    async def close(self) -> None:
        await stop([self._listening])

    async def _listen_for_ever(self) -> None:
        while True:
            try:
                async with self._redis.pubsub(ignore_subscribe_messages=True) as channel:
                    await channel.subscribe(self._keys.commands(self._owner))
                    async for message in channel.listen():
                        task = asyncio.create_task(self._carry_out(json.loads(message["data"])))
                        self._obeying.add(task)
                        task.add_done_callback(self._obeying.discard)
            except (RedisError, OSError) as error:
                logger.warning("Redis gives no commands: %s", error)
                await asyncio.sleep(RETRY_S)

    async def _carry_out(self, message: dict[str, Any]) -> None:
        try:
            reply: dict[str, Any] = {"answer": await self._obey(message["run"], message["command"])}
        except Exception as error:
            if not isinstance(error, ConstrainedError):
                logger.exception("a command of another replica failed")
            ours = error if isinstance(error, ConstrainedError) else InternalError("a command failed")
            reply = {"error": {"code": ours.code, "message": str(ours), "field": ours.place}}
        key = self._keys.reply(message["id"])
        try:
            pipe = self._redis.pipeline(transaction=True)
            pipe.rpush(key, json.dumps(reply))
            pipe.expire(key, REPLY_TTL_S)
            await pipe.execute()
        except (RedisError, OSError) as error:
            logger.warning("Redis takes no reply: %s", error)


def _request_errors(kind: type[RequestError]) -> dict[str, type[RequestError]]:
    found = {kind.code: kind}
    for below in kind.__subclasses__():
        found.update(_request_errors(below))
    return found


def _error(code: str, message: str, field: str | None) -> ConstrainedError:
    """The error that another replica raised."""
    kind = _request_errors(RequestError).get(code)
    if kind is not None:
        return kind(message, field)
    return errors.OverloadedError(message) if code == errors.OverloadedError.code else InternalError(message)
