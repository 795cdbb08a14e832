// Which tab of a browser leads. Web Locks say it where they are there: a tab that closes or crashes gives its lock
// up. Over plain HTTP they are not: then the tabs agree over their channel. A leader that falls silent is replaced.

const BEAT = 1000; // milliseconds between two words of the tab that leads
const PATIENCE = 3000; // milliseconds of silence after which another tab leads
const PATIENCE_HIDDEN = 180_000; // likewise of a hidden tab, whose timers run once a minute
const OBJECTION = 150; // milliseconds in which a tab that leads answers a claim

export class Leader {
  /** `begin()` and `end()` are called when this tab leads and no longer does; `state()` gives what a beat tells. */
  constructor(channel, name, { begin, end, state }) {
    Object.assign(this, { channel, name, begin, end, state, locks: navigator.locks ?? null });
    this.id = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    this.term = 0; // of who leads, as far as it is known here; later ones are higher
    this.by = null; // the tab that leads
    this.leading = false;
    this.standing = false;
  }

  /** From now on this tab may lead. */
  stand() {
    if (this.standing) return;
    this.standing = true;
    this.channel.postMessage({ kind: "hello" });
    this.queue();
    this.watch(this.locks ? undefined : OBJECTION);
  }

  /** This tab leaves leading to others. */
  withdraw() {
    if (!this.standing) return;
    this.standing = false;
    clearTimeout(this.patience);
    clearTimeout(this.claim);
    this.queued?.abort();
    if (!this.leading) return;
    this.step(false);
    this.channel.postMessage({ kind: "resign", term: this.term, by: this.id });
    this.release?.();
  }

  /** Whether what a tab says counts: it is the one that leads. */
  leads({ term, by }) {
    return term === this.term && by === this.by && by !== this.id;
  }

  /** Take in what another tab says about who leads; gives whether a tab leads now that did not before. */
  take({ kind, term, by }) {
    if (kind === "hello" && this.leading) this.beat();
    if (kind === "claim") this.contest(by);
    if (kind === "resign" && term === this.term && !this.leading) this.vacant();
    if (kind !== "lead" || term < this.term || (term === this.term && by < this.by)) return false;
    const other = by !== this.by;
    Object.assign(this, { term, by });
    clearTimeout(this.claim);
    if (this.leading) this.deposed();
    else this.watch();
    return other;
  }

  /** Tell the others that this tab leads, and what its state is. */
  beat() {
    this.channel.postMessage({ kind: "lead", term: this.term, by: this.id, ...this.state() });
  }

  // Locks: the next in the queue leads when the one before is gone

  queue() {
    if (!this.locks) return;
    this.queued = new AbortController();
    this.hold({ signal: this.queued.signal });
  }

  hold(options) {
    this.locks.request(this.name, options, () => this.reign()).catch((error) => {
      if (error.name !== "AbortError") {
        this.locks = null; // a browser may refuse them
        this.watch(OBJECTION);
      } else if (this.leading) this.deposed(); // another tab took it
    });
  }

  reign() {
    if (!this.standing || this.leading) return null;
    return new Promise((release) => {
      this.release = release;
      this.lead();
    });
  }

  // Without them: who claims to lead, leads if no one objects

  contest(by) {
    if (this.leading) this.beat();
    else if (this.claiming && by < this.id) {
      clearTimeout(this.claim);
      this.watch();
    }
  }

  vacant() {
    this.by = null;
    if (this.standing && !this.locks) this.watch(Math.random() * OBJECTION);
  }

  claimIt() {
    this.channel.postMessage({ kind: "claim", by: this.id });
    this.claiming = true;
    this.claim = setTimeout(() => this.lead(), OBJECTION);
  }

  // Both

  lead() {
    if (!this.standing || this.leading) return;
    Object.assign(this, { term: Math.max(this.term + 1, Date.now()), by: this.id });
    this.step(true);
    this.beat();
  }

  deposed() {
    this.step(false);
    this.release?.();
    this.queue();
    this.watch();
  }

  step(on) {
    this.leading = on;
    this.claiming = false;
    clearTimeout(this.patience);
    clearInterval(this.beats);
    if (on) {
      this.beats = setInterval(() => this.beat(), BEAT);
      this.begin();
    } else this.end();
  }

  /** Wait for a word of the one that leads. */
  watch(patience = document.hidden ? PATIENCE_HIDDEN : PATIENCE * (1 + Math.random() / 2)) {
    clearTimeout(this.patience);
    this.claiming = false;
    if (!this.standing || this.leading) return;
    this.patience = setTimeout(() => {
      if (!this.locks) this.claimIt();
      else {
        this.queued?.abort();
        this.hold({ steal: true });
      }
    }, patience);
  }
}
