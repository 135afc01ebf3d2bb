// live.js - the connection to an environment, and the mirrors of it that views show.
//
// A tab has one connection, to the environment that it shows; it is the gateway's own client, which
// comes back by itself and misses nothing. Views are drawn at most once a frame, whatever comes.
import { useEffect, useState } from "preact/hooks";

import { connect } from "../../client/client.js";
import { gatewayUrl } from "./base.js";
import { Emitter, useEvent } from "./emitter.js";
import { session } from "./session.js";

/** What tables show. Values of runs may be megabytes: the view of one run asks for its own. */
const fields = ["queue", "version", "attemptCount", "isTest", "queuedAt", "delayedUntil", "startedAt", "finishedAt", "realtimeStreams"];
const connection = new Emitter();
let current, currentKey, closing;

const keyOf = ({ ref, env, branch }) => `${ref}/${env}/${branch ?? ""}`;

/** The client of a place: that of another place is closed. */
export function clientOf(place) {
  const key = keyOf(place);
  if (current && currentKey === key && current.state !== "closed") return current;
  current?.close();
  closing?.();
  current = connect(gatewayUrl, { getToken: () => session.token({ ref: place.ref, env: place.env, branch: place.branch }), fields, api: "2025-07-16", every: 50 });
  currentKey = key;
  const client = current;
  closing = client.on("state", () => {
    connection.emit("state");
    if (client.state === "closed" && client.error) session.check(); // perhaps the person's token has ended
  });
  connection.emit("state");
  return client;
}

session.on("change", () => {
  if (session.isSignedIn) return;
  current?.close();
  current = currentKey = undefined;
  connection.emit("state");
});

/** connecting, live, paused, closed; and why. */
export function useConnection() {
  useEvent(connection, "state");
  return { state: current?.state ?? "closed", error: current?.error };
}

/** Calls draw once in the next frame, however often it is asked to. */
export function perFrame(draw) {
  let frame;
  const ask = () => { frame ??= requestAnimationFrame(() => { frame = undefined; draw(); }); };
  ask.cancel = () => { if (frame !== undefined) cancelAnimationFrame(frame); frame = undefined; };
  return ask;
}

/** A mirror of a watch or a subscription, drawn anew with each change of it. */
export function useMirror(place, open, keys) {
  const [state, setState] = useState({});
  useEffect(() => {
    const mirror = open(clientOf(place));
    const draw = perFrame(() => setState({ mirror }));
    const ends = ["change", "synced", "state"].map((event) => mirror.on(event, draw));
    setState({ mirror });
    return () => {
      draw.cancel();
      for (const end of ends) end();
      mirror.close();
    };
  }, [keyOf(place), JSON.stringify(keys)]);
  return state.mirror;
}

export const useWatch = (place, filter, options) =>
  useMirror(place, (client) => client.watch(filter, options), [filter, options]);

export const useSubscription = (place, filter) =>
  useMirror(place, (client) => client.subscribe(filter), [filter]);
