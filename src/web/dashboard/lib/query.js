// query.js - data for a view: requested when it is shown, and again when it may have changed.
//
//   const { data, error, isLoading, reload } = useQuery([place, id], () => session.ask(…), { everyMs: 5000 });
//
// Known data stays on the page until the next response. If the gateway restarts, the request is retried.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

const firstPauseMs = 500, longestPauseMs = 8000;

export function useQuery(keys, ask, { everyMs, enabled = true } = {}) {
  const [state, setState] = useState({ isLoading: true });
  const latest = useRef(ask), run = useRef();
  latest.current = ask;
  const key = JSON.stringify(keys);

  useEffect(() => {
    if (!enabled) {
      setState({ isLoading: false });
      return undefined;
    }
    let isGone = false, timer, pauseMs = firstPauseMs, isAsking = false, again = false;
    setState((old) => old.key === key ? old : { isLoading: true, key });
    async function load() {
      if (isAsking) { again = true; return; }
      clearTimeout(timer);
      isAsking = true;
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
      isAsking = false;
      if (isGone) return;
      if (again) { again = false; load(); }
      else if (waitMs) timer = setTimeout(() => document.hidden && everyMs ? wait() : load(), waitMs);
    }
    /** Does not poll while the tab is hidden. */
    function wait() {
      const shown = () => { document.removeEventListener("visibilitychange", shown); if (!isGone) load(); };
      document.addEventListener("visibilitychange", shown);
    }
    run.current = load;
    load();
    return () => { isGone = true; clearTimeout(timer); };
  }, [key, enabled, everyMs]);

  return { ...state, reload: useCallback(() => run.current?.(), []) };
}
