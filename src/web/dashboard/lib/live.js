// live.js - the connection to an environment, and its mirrors for views.
//
// A tab has one connection, to the environment that it shows. It uses the client of src/web/client,
// which reconnects by itself and misses no change. Views are drawn at most once per frame.
import { useEffect, useState } from "preact/hooks";

import { connect } from "../../client/client.js";
import { gatewayUrl } from "./base.js";
import { Emitter, useEvent } from "./emitter.js";
import { session } from "./session.js";

/** Fields that tables show. Payloads may be megabytes, so the view of a run requests its own. */
const fields = ["queue", "version", "attemptCount", "isTest", "queuedAt", "delayedUntil", "startedAt", "finishedAt", "realtimeStreams", "costInCents", "baseCostInCents"];
const connection = new Emitter();
let current, currentKey, removeListener;
let lostAt; // when the connection was lost; undefined while it is open, and before it is first open

const keyOf = ({ ref, env, branch }) => `${ref}/${env}/${branch ?? ""}`;

/** Returns the client of a place, and closes the client of another place. */
export function clientOf(place) {
  const key = keyOf(place);
  if (current && currentKey === key && current.state !== "closed") return current;
  current?.close();
  removeListener?.();
  current = connect(gatewayUrl, { getToken: () => session.token({ ref: place.ref, env: place.env, branch: place.branch }), fields, api: "2025-07-16", every: 50 });
  currentKey = key;
  lostAt = undefined;
  const client = current;
  let wasLive = false;
  removeListener = client.on("state", () => {
    if (client.state === "live" || client.state === "paused") lostAt = undefined;
    else if (wasLive) lostAt ??= Date.now();
    wasLive ||= client.state === "live";
    connection.emit("state");
    if (client.state === "closed" && client.error) session.check(); // perhaps the user's token has expired
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

/** Returns { state, error, lostAt }. state: connecting, live, paused or closed; lostAt: when an open connection was lost. */
export function useConnection() {
  useEvent(connection, "state");
  return { state: current?.state ?? "closed", error: current?.error, lostAt: current ? lostAt : undefined };
}

/** Returns a function that makes draw be called in the next frame, once for any number of calls. */
export function perFrame(draw) {
  let frame;
  const request = () => { frame ??= requestAnimationFrame(() => { frame = undefined; draw(); }); };
  request.cancel = () => { if (frame !== undefined) cancelAnimationFrame(frame); frame = undefined; };
  return request;
}

/** Opens a mirror, by a watch or a subscription, and redraws the component after each change. */
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
