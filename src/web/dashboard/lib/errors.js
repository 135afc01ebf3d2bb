// errors.js - the error of a run in a user's words, and its stack with the user's frames apart from those of packages.

/** Meanings of internal error codes. A code that ends with _ stands for all codes that begin with it. */
const meanings = {
  MAX_DURATION_EXCEEDED: "The run took longer than its maxDuration",
  TASK_PROCESS_OOM_KILLED: "The process of the run ran out of memory",
  TASK_PROCESS_MAYBE_OOM_KILLED: "The process of the run was killed, probably because it ran out of memory",
  TASK_PROCESS_SIGSEGV: "The process of the run crashed with a segmentation fault",
  TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE: "The process of the run exited with an error",
  TASK_PROCESS_SIGTERM: "The process of the run was stopped by SIGTERM",
  TASK_PROCESS_SIGKILL_TIMEOUT: "The process of the run did not stop in time and was killed",
  TASK_RUN_HEARTBEAT_TIMEOUT: "The worker of the run stopped responding",
  TASK_RUN_STALLED_: "The worker of the run stopped responding",
  TASK_RUN_DEQUEUED_MAX_RETRIES: "Workers took the run several times and never started it",
  TASK_RUN_CANCELLED: "The run was canceled",
  TASK_INPUT_ERROR: "The payload of the run is invalid",
  TASK_OUTPUT_ERROR: "The output of the run cannot be serialized",
  TASK_MIDDLEWARE_ERROR: "The middleware of the task failed",
  TASK_RUN_UNCAUGHT_EXCEPTION: "An exception outside of the task was not caught",
  TASK_RUN_CRASHED: "The process of the run crashed",
  TASK_DID_CONCURRENT_WAIT: "The run waited for two things at the same time, which tasks cannot do",
  RECURSIVE_WAIT_DEADLOCK: "The run waits for a run of its own queue that can never start",
  DISK_SPACE_EXCEEDED: "The run ran out of disk space",
  OUTDATED_SDK_VERSION: "The SDK of the task is too old",
  HANDLE_ERROR_ERROR: "The error handler of the task failed",
  PAYLOAD_TOO_LARGE: "The payload of the run is too large",
  COULD_NOT_FIND_EXECUTOR: "The version of the run does not have this task",
  COULD_NOT_FIND_TASK: "The version of the run does not have this task",
  COULD_NOT_IMPORT_TASK: "The file of the task could not be imported",
  CONFIGURED_INCORRECTLY: "The configuration of the project is invalid",
};

/** Returns the headline of an error: { code, text, detail, isOutput }. For an internal code, text is its meaning, and detail is
 * the rest of the message, such as an exit code. isOutput: the stack is output of the process instead of frames. */
export function headlineOf({ name, message = "" }, limit) {
  const expired = /^Run expired because the TTL \((.+)\) was reached$/.exec(message);
  if (expired) return { text: `The run expired: no worker started it within ${expired[1]}` };
  const code = /\(([A-Z][A-Z0-9_]{5,})\)/.exec(message)?.[1] ?? (Object.hasOwn(meanings, message) ? message : undefined);
  const known = code && Object.keys(meanings).find((one) => one === code || (one.endsWith("_") && code.startsWith(one)));
  if (!known) return { text: `${name ?? "Error"}: ${message}` };
  const isLimit = known === "MAX_DURATION_EXCEEDED" && limit, own = message === code ? "" : message.replace(/^trigger\.dev internal error /, "").replace(`(${code})`, "").replace(/^: /, "").replace(" after signal null", "").trim();
  return { code, text: `${meanings[known]}${isLimit ? ` of ${limit}` : ""}`, detail: own, isOutput: code.startsWith("TASK_PROCESS_") };
}

const isForeign = (frame) => /node_modules|node:|<anonymous>|\(native\)/.test(frame);

/** Returns [{ isForeign, lines }]: the frames of a stack trace in groups. Consecutive frames of packages and Node are one group. */
export function framesOf(stackTrace) {
  const groups = [], frames = stackTrace.split("\n").filter((line) => /^\s*at /.test(line));
  for (const frame of frames) {
    const line = frame.trim().replace(/file:\/\//g, ""), last = groups.at(-1), foreign = isForeign(line);
    if (last?.isForeign === foreign) last.lines.push(line);
    else groups.push({ isForeign: foreign, lines: [line] });
  }
  return groups;
}

/** The lines above the frames; "" if they only repeat the headline. */
export function introOf(stackTrace, { name, message }) {
  const lines = stackTrace.split("\n"), end = lines.findIndex((line) => /^\s*at /.test(line));
  const intro = (end < 0 ? lines : lines.slice(0, end)).join("\n").trim();
  return [`${name ?? "Error"}: ${message}`, message, `Error: ${message}`].includes(intro) ? "" : intro;
}
