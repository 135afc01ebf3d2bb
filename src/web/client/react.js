// react.js - runs as React shows them: one hook for subscriptions, one for watches.
//
//   const { runs, state } = useRuns(client, { tags: ["demo"] });
//   const { runs, counts } = useWatch(client, { status: "EXECUTING" }, { limit: 20, counts: true });
//
// A component that is shown subscribes, one that is gone has left. With a filter of null nothing is
// asked for.
import { useMemo, useSyncExternalStore } from "react";

const nothing = { runs: [], counts: undefined, gaps: 0, state: "connecting", error: undefined };

const look = ({ runs, counts, gaps, state, error }) => ({ runs: [...runs.values()], counts, gaps, state, error });

/** key: what is asked for, as a text: with another one it is asked for anew. */
function useMirror(client, open, key) {
  const store = useMemo(() => {
    let shown = nothing;
    const subscribe = (changed) => {
      const mirror = open?.();
      if (!mirror) return () => {};
      const update = () => {
        shown = look(mirror);
        changed();
      };
      mirror.on("change", update);
      mirror.on("state", update);
      if (mirror.state === "closed") update();
      return () => mirror.close();
    };
    return { subscribe, show: () => shown };
  }, [client, key]);
  return useSyncExternalStore(store.subscribe, store.show, () => nothing);
}

export function useRuns(client, filter) {
  return useMirror(client, filter && (() => client.subscribe(filter)), JSON.stringify(filter));
}

export function useWatch(client, filter, options) {
  return useMirror(client, filter && (() => client.watch(filter, options)), JSON.stringify([filter, options]));
}
