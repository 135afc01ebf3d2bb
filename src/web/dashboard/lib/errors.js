// errors.js - the error of a run in a user's words, and its stack with the user's frames apart from those of packages.

/** Meanings of internal error codes; a code that ends with _ stands for all that begin with it. */
const meanings = {
  MAX_DURATION_EXCEEDED: "It ran longer than its maxDuration",
  TASK_PROCESS_OOM_KILLED: "It ran out of memory",
  TASK_PROCESS_MAYBE_OOM_KILLED: "Its process was killed, probably because it ran out of memory",
  TASK_PROCESS_SIGSEGV: "Its process crashed with a segmentation fault",
  TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE: "Its process exited with an error code",
  TASK_PROCESS_SIGKILL_TIMEOUT: "Its process did not stop in time and was killed",
  TASK_RUN_HEARTBEAT_TIMEOUT: "Its worker stopped responding",
  TASK_RUN_STALLED_: "Its worker stopped responding",
  TASK_RUN_DEQUEUED_MAX_RETRIES: "Workers took it several times and never started it",
  TASK_RUN_CANCELLED: "It was canceled",
  TASK_INPUT_ERROR: "Its payload is not valid",
  TASK_OUTPUT_ERROR: "Its output cannot be serialized",
  TASK_MIDDLEWARE_ERROR: "Its middleware failed",
  TASK_RUN_UNCAUGHT_EXCEPTION: "An exception outside of the task was not caught",
  TASK_RUN_CRASHED: "Its process crashed",
  TASK_DID_CONCURRENT_WAIT: "It waited for two things at the same time, which tasks cannot do",
  RECURSIVE_WAIT_DEADLOCK: "It waits for a run of its own queue that can never start",
  DISK_SPACE_EXCEEDED: "It ran out of disk space",
  OUTDATED_SDK_VERSION: "Its SDK is too old",
  HANDLE_ERROR_ERROR: "Its error handler failed",
  PAYLOAD_TOO_LARGE: "Its payload is too large",
  COULD_NOT_FIND_EXECUTOR: "Its version does not have this task",
  COULD_NOT_FIND_TASK: "Its version does not have this task",
  COULD_NOT_IMPORT_TASK: "The file of its task could not be imported",
  CONFIGURED_INCORRECTLY: "The project's configuration is not valid",
};

/** { code, text }: the headline of an error. text has the meaning of an internal code. */
export function headlineOf({ name, message = "" }, limit) {
  const code = /\(([A-Z][A-Z0-9_]{5,})\)/.exec(message)?.[1] ?? (Object.hasOwn(meanings, message) ? message : undefined);
  const known = code && Object.keys(meanings).find((one) => one === code || (one.endsWith("_") && code.startsWith(one)));
  if (!known) return { text: `${name ?? "Error"}: ${message}` };
  const isLimit = known === "MAX_DURATION_EXCEEDED" && limit, rest = /^trigger\.dev internal error/.test(message) || message === code ? "" : `: ${message.replace(` (${code})`, "")}`;
  return { code, text: `${meanings[known]}${isLimit ? ` of ${limit}` : ""}${rest}` };
}

const isForeign = (frame) => /node_modules|node:|<anonymous>|\(native\)/.test(frame);

/** Returns [{ isForeign, lines }]: frames of a stack trace, those of packages and of Node together. */
export function framesOf(stackTrace) {
  const groups = [], frames = stackTrace.split("\n").filter((line) => /^\s*at /.test(line));
  for (const frame of frames) {
    const line = frame.trim().replace(/file:\/\//g, ""), last = groups.at(-1), foreign = isForeign(line);
    if (last?.isForeign === foreign) last.lines.push(line);
    else groups.push({ isForeign: foreign, lines: [line] });
  }
  return groups;
}

/** The lines above the frames, without the headline that is shown already. */
export function introOf(stackTrace, { name, message }) {
  const lines = stackTrace.split("\n"), end = lines.findIndex((line) => /^\s*at /.test(line));
  const intro = (end < 0 ? lines : lines.slice(0, end)).join("\n").trim();
  return [`${name ?? "Error"}: ${message}`, message, `Error: ${message}`].includes(intro) ? "" : intro;
}
