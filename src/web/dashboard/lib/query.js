// query.js - data for a view: requested when the view is shown, and again when the data may have changed.
//
//   const { data, error, isLoading, reload } = useQuery([place, id], () => session.request(…), { everyMs: 5000 });
//
// Earlier data stays on the page until the next response. If the gateway restarts, the request is retried.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

const firstPauseMs = 500, longestPauseMs = 8000;

export function useQuery(keys, fetchData, { everyMs, enabled = true } = {}) {
  const [state, setState] = useState({ isLoading: true });
  const latest = useRef(fetchData), start = useRef();
  latest.current = fetchData;
  const key = JSON.stringify(keys);

  useEffect(() => {
    if (!enabled) {
      setState({ isLoading: false });
      return undefined;
    }
    let isGone = false, timer, pauseMs = firstPauseMs, isFetching = false, mustRepeat = false;
    setState((old) => old.key === key ? old : { isLoading: true, key });
    async function load() {
      if (isFetching) { mustRepeat = true; return; }
      clearTimeout(timer);
      isFetching = true;
      let waitMs = everyMs;
      try {
        const data = await latest.current();
        if (!isGone) setState({ data, key, isLoading: false });
        pauseMs = firstPauseMs;
      } catch (error) {
        if (!isGone) setState((old) => ({ ...old, key, error, isLoading: false }));
        if (!error.status) {
          waitMs = pauseMs;
          pauseMs = Math.min(pauseMs * 2, longestPauseMs);
        }
      }
      isFetching = false;
      if (isGone) return;
      if (mustRepeat) { mustRepeat = false; load(); }
      else if (waitMs) timer = setTimeout(() => document.hidden && everyMs ? waitUntilShown() : load(), waitMs);
    }
    /** Waits until the tab is shown: a hidden tab does not poll. */
    function waitUntilShown() {
      const shown = () => { document.removeEventListener("visibilitychange", shown); if (!isGone) load(); };
      document.addEventListener("visibilitychange", shown);
    }
    start.current = load;
    load();
    return () => { isGone = true; clearTimeout(timer); };
  }, [key, enabled, everyMs]);

  return { ...state, reload: useCallback(() => start.current?.(), []) };
}
