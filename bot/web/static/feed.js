// What the server tells as it happens, over one stream for all tabs of a browser: one tab holds it and tells the
// others. A hidden tab holds none, unless the person wants to be notified there.

import { Leader } from "./leader.js";
import { Subscription } from "./stream.js";

const PATH = "api/events?turns=true";
const PATIENCE = 1000; // milliseconds for which what is to be shown waits for the stream

/** Names what tabs of the same person share, whichever way they signed in; no token can be read from it. */
export function nameOf(account, token) {
  let [one, other] = [0xdeadbeef, 0x41c6ce57];
  for (const each of token) {
    one = Math.imul(one ^ each.codePointAt(0), 2654435761);
    other = Math.imul(other ^ each.codePointAt(0), 1597334677);
  }
  return `nod ${new URL(".", document.baseURI).pathname} ${account} ${token && [one, other].map((each) => (each >>> 0).toString(36)).join("")}`;
}

export class Feed {
  /**
   * `event` gets each event; `opened(returned)` is called where something may have been missed since `begun`: a stream
   * was opened, or the tab was hidden. What is asked for then is told of from there on. `state` gets "live" or "down"; `away()` says whether a hidden tab listens, too; `signedOut()` that the
   * person did, in another tab.
   */
  constructor(name, { event, opened, state, away = () => false, signedOut = () => {} }) {
    Object.assign(this, { event, opened, state, away, signedOut, live: false, lastId: null, subscription: null });
    // resolved where there is a stream for the first time, or none comes: what is asked for before it may be missed
    this.begun = new Promise((begin) => (this.begin = begin));
    this.started = this.returned = false;
    this.channel = "BroadcastChannel" in globalThis ? new BroadcastChannel(name) : null;
    if (this.channel) {
      this.leader = new Leader(this.channel, name, {
        begin: () => this.open(),
        end: () => this.shut(),
        state: () => ({ live: this.live, lastId: this.subscription?.lastId ?? this.lastId }),
      });
      this.channel.addEventListener("message", ({ data }) => this.take(data));
    }
    document.addEventListener("visibilitychange", () => this.look(true));
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", (shown) => shown.persisted && this.look(true));
    this.look();
  }

  /** Listen while the tab is looked at. `again`: it may have missed something. */
  look(again = false) {
    if (this.ended) return;
    if (document.hidden && !this.away()) {
      this.close();
      return;
    }
    if (again && !document.hidden) this.returned = true;
    if (this.returned || !this.started) this.expect();
    if (this.leader) this.leader.stand();
    else if (!this.subscription) this.open();
  }

  /** Ask for what was missed with the stream, which is there or about to be; after a while without it, too. */
  expect() {
    if (this.live) this.ask();
    else this.patience ??= setTimeout(() => this.ask(), PATIENCE);
  }

  ask() {
    const { started, returned } = this;
    this.forgetPatience();
    Object.assign(this, { started: true, returned: false });
    if (started) this.opened(returned);
    else this.begin();
  }

  forgetPatience() {
    clearTimeout(this.patience);
    this.patience = null;
  }

  close() {
    this.forgetPatience();
    this.live = false;
    if (this.leader) this.leader.withdraw();
    else this.shut();
  }

  /** No more of this in this tab: the person is not signed in any longer. */
  end() {
    this.ended = true;
    this.close();
    this.begin();
    this.turn("down");
  }

  /** Tell the other tabs that the person signed out. */
  tellSignedOut() {
    this.channel?.postMessage({ kind: "signed out" });
  }

  // The tab that leads

  open() {
    this.subscription = new Subscription(PATH, {
      lastId: this.lastId,
      event: (event, id) => {
        this.channel?.postMessage({ kind: "event", term: this.leader.term, by: this.leader.id, event, id });
        this.event(event);
      },
      opened: () => this.ask(),
      state: (state) => {
        this.turn(state);
        this.leader?.beat();
      },
      refused: () => this.end(),
    });
  }

  shut() {
    this.lastId = this.subscription?.lastId ?? this.lastId;
    this.subscription?.close();
    this.subscription = null;
  }

  // The others

  take(said) {
    if (said.kind === "signed out") this.signedOut();
    if (said.kind === "event" && this.leader.leads(said)) {
      if (said.id !== null) this.lastId = said.id;
      this.event(said.event);
      return;
    }
    const changed = this.leader.take(said);
    if (said.kind !== "lead" || !this.leader.leads(said)) return;
    this.lastId = said.lastId ?? this.lastId;
    const began = said.live && (changed || !this.live);
    this.turn(said.live ? "live" : "down");
    if (began) this.ask();
  }

  turn(state) {
    this.live = state === "live";
    this.state(state);
  }
}
