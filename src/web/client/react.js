// react.js - React hooks for runs: one for subscriptions, one for watches.
//
//   const { runs, state } = useRuns(client, { tags: ["demo"] });
//   const { runs, counts } = useWatch(client, { status: "EXECUTING" }, { limit: 20, counts: true });
//
// A component subscribes when it is mounted, and unsubscribes when it is unmounted. A filter of null
// subscribes to nothing.
import { useMemo, useSyncExternalStore } from "react";

const empty = { runs: [], counts: undefined, gaps: 0, state: "connecting", error: undefined };

const contentOf = ({ runs, counts, gaps, state, error }) => ({ runs: [...runs.values()], counts, gaps, state, error });

/** key: the filter as a text; if it changes, the hook subscribes again. */
function useMirror(client, open, key) {
  const store = useMemo(() => {
    let shown = empty;
    const subscribe = (changed) => {
      const mirror = open?.();
      if (!mirror) return () => {};
      const update = () => {
        shown = contentOf(mirror);
        changed();
      };
      mirror.on("change", update);
      mirror.on("state", update);
      if (mirror.state === "closed") update();
      return () => mirror.close();
    };
    return { subscribe, show: () => shown };
  }, [client, key]);
  return useSyncExternalStore(store.subscribe, store.show, () => empty);
}

export function useRuns(client, filter) {
  return useMirror(client, filter && (() => client.subscribe(filter)), JSON.stringify(filter));
}

export function useWatch(client, filter, options) {
  return useMirror(client, filter && (() => client.watch(filter, options)), JSON.stringify([filter, options]));
}
