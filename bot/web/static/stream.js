// Server-sent events by fetch, because EventSource cannot send a token.

import { open } from "./api.js";

const SILENCE = 45_000; // milliseconds; the bot sends a comment every 15 seconds
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;

/** Give `{id, data}` for every event; `data` is null for comments and bare ids. */
export async function* events(response, stop) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let id = null;
  let data = [];
  try {
    for (;;) {
      const quiet = setTimeout(stop, SILENCE);
      const { done, value } = await reader.read().finally(() => clearTimeout(quiet));
      if (done) return;
      rest += value;
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line === "") {
          yield { id, data: data.length ? JSON.parse(data.join("\n")) : null };
          data = [];
        } else if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
        else if (line.startsWith("id:")) id = line.slice(3).trim();
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** A stream that is opened again, with growing pauses, until `close`. */
export class Subscription {
  /**
   * `event(data, id)` gets each event, with the id that it is resumed by or null. `opened` is called at each start,
   * before its first event; `state` with "live" or "down"; `refused` where opening it again is of no use.
   */
  constructor(path, { event, lastId = null, opened = () => {}, state = () => {}, refused = () => {} }) {
    Object.assign(this, { path, event, lastId, opened, state, refused });
    this.live = false;
    this.closed = false;
    this.wake = () => this.hurry?.();
    addEventListener("online", this.wake);
    this.run();
  }

  close() {
    this.closed = true;
    removeEventListener("online", this.wake);
    this.abort?.abort();
    this.hurry?.();
  }

  async run() {
    let pause = FIRST_PAUSE;
    while (!this.closed) {
      try {
        await this.listen();
        pause = FIRST_PAUSE;
      } catch (error) {
        if (this.closed) return;
        // 401 opens the sign-in; the others do not fix themselves
        if ([401, 403, 404, 409].includes(error.status)) {
          this.refused();
          return;
        }
        if (this.live) pause = FIRST_PAUSE;
        if (!(error.status >= 0) && error.name !== "AbortError" && error.name !== "TypeError") console.error(error);
      }
      if (this.closed) return;
      this.live = false;
      this.state("down");
      const spread = pause * (0.75 + Math.random() / 2);
      await new Promise((resolve) => {
        this.hurry = resolve;
        setTimeout(resolve, spread);
      });
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  }

  async listen() {
    this.abort = new AbortController();
    const headers = this.lastId === null ? {} : { "Last-Event-ID": this.lastId };
    const response = await open("GET", this.path, { headers, signal: this.abort.signal });
    for await (const { id, data } of events(response, () => this.abort.abort())) {
      if (this.closed) return;
      if (!this.live) {
        this.live = true;
        this.state("live");
        this.opened();
      }
      if (data) this.event(data, id);
      if (id !== null) this.lastId = id;
    }
  }
}
