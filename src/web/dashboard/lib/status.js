// status.js - labels and colors of run statuses, by their SDK 4.x names.
export const statuses = {
  PENDING_VERSION: { label: "Waiting for version", tone: "wait" },
  DELAYED: { label: "Delayed", tone: "wait" },
  QUEUED: { label: "Queued", tone: "wait" },
  DEQUEUED: { label: "Dequeued", tone: "run" },
  EXECUTING: { label: "Executing", tone: "run" },
  WAITING: { label: "Waiting", tone: "pause" },
  COMPLETED: { label: "Completed", tone: "good" },
  FAILED: { label: "Failed", tone: "bad" },
  CRASHED: { label: "Crashed", tone: "bad" },
  SYSTEM_FAILURE: { label: "System failure", tone: "bad" },
  TIMED_OUT: { label: "Timed out", tone: "bad" },
  CANCELED: { label: "Canceled", tone: "off" },
  EXPIRED: { label: "Expired", tone: "off" },
};

export const finalStatuses = new Set(["COMPLETED", "FAILED", "CRASHED", "SYSTEM_FAILURE", "TIMED_OUT", "CANCELED", "EXPIRED"]);
export const failedStatuses = ["FAILED", "CRASHED", "SYSTEM_FAILURE", "TIMED_OUT"];
export const isFinal = (run) => finalStatuses.has(run.status);
export const labelOf = (status) => statuses[status]?.label ?? status;
export const toneOf = (status) => statuses[status]?.tone ?? "off";
