// A reader of text/event-stream as the HTML standard of WHATWG describes it. It uses Node's fetch.
import { until } from "./gateway.mjs";

export class EventStream {
  /** Opens the stream. If it is refused, it has { status, text, json } of the response and no events. */
  static async open(url, { headers = {} } = {}) {
    const stream = new EventStream();
    const answer = await fetch(url, { headers, signal: stream.controller.signal });
    Object.assign(stream, { status: answer.status, headers: answer.headers });
    if (answer.status !== 200) {
      stream.text = await answer.text();
      stream.json = JSON.parse(stream.text);
      return stream;
    }
    stream.reader = answer.body.getReader();
    stream.read(stream.reader);
    return stream;
  }

  constructor() {
    Object.assign(this, { controller: new AbortController(), events: [], blocksWithoutData: 0, id: "", ended: false, taken: 0 });
  }

  async read(reader) {
    const decoder = new TextDecoder();
    let text = "";
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        text += decoder.decode(value, { stream: true });
        for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) this.dispatch(text.slice(0, end));
      }
      this.clean = true;
    } catch (error) { this.error = error; }
    this.ended = true;
  }

  dispatch(block) {
    const event = { type: "message", data: [] };
    for (const line of block.split(/\r\n|\r|\n/)) {
      const colon = line.indexOf(":"), name = line.slice(0, colon), value = line.slice(colon + 1).replace(/^ /, "");
      if (name === "data") event.data.push(value);
      else if (name === "event") event.type = value;
      else if (name === "id") this.id = event.id = value;
      else if (name === "retry") this.retry = value;
    }
    if (event.data.length) this.events.push({ ...event, data: JSON.parse(event.data.join("\n")) });
    else this.blocksWithoutData++;
  }

  /** Returns the next event, of the given type if there is one; skips earlier ones. */
  async next(type, timeoutMs = 30_000) {
    const find = () => this.events.findIndex((event, i) => i >= this.taken && (!type || event.type === type));
    await until(() => find() >= 0 || this.ended, { timeoutMs, what: `an event ${type ?? ""}` });
    const at = find();
    if (at < 0) throw new Error(`the stream ended without an event ${type ?? ""}`);
    this.taken = at + 1;
    return this.events[at];
  }

  untilEnd(timeoutMs = 30_000) { return until(() => this.ended, { timeoutMs, what: "the end of the stream" }); }

  /** Closes the stream. In Node 18 the signal of an old request may have no effect, so the reader is canceled, too. */
  cut() {
    this.controller.abort();
    this.reader?.cancel().catch(() => {});
  }
}
