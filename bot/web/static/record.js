// A button that records what a person says, as a file for the next message. It is not sent before they send it.

import { announce } from "./dom.js";

const KINDS = ["audio/webm;codecs=opus", "audio/mp4", "audio/webm"]; // what a browser may record in, the smallest first
const MOST_SECONDS = 600; // longer recordings are not heard
const RECORD = "Record what you say";
const STOP = "Stop recording";
const REFUSED = "The browser may not use the microphone. Allow it in the address bar, then press again.";

const spoken = new WeakSet();

/** True for a file that was recorded here. */
export const isSpoken = (file) => spoken.has(file);

export class Recorder {
  /** `take(file)` gets each recording; `icons` are those of the button at rest and while it records. */
  constructor(button, icons, take) {
    Object.assign(this, { button, icons, take, chunks: [], recording: null, asking: false });
    this.draw();
    button.addEventListener("click", () => (this.recording ? this.stop() : this.start()));
  }

  /** Offer it, where the browser can record. */
  offer(wanted) {
    this.button.hidden = !(wanted && globalThis.MediaRecorder && navigator.mediaDevices);
  }

  async start() {
    if (this.asking) return; // the button stays enabled: it would lose the focus
    this.asking = true;
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      const kind = KINDS.find((each) => MediaRecorder.isTypeSupported(each));
      this.recording = new MediaRecorder(stream, kind ? { mimeType: kind } : {});
      this.chunks = [];
      this.recording.addEventListener("dataavailable", ({ data }) => this.chunks.push(data));
      this.recording.addEventListener("stop", () => this.end(stream));
      this.recording.start();
      this.timer = setTimeout(() => this.stop(), MOST_SECONDS * 1000);
      announce("Recording. Press again to stop.");
    } catch (error) {
      this.recording = null;
      announce(error.name === "NotAllowedError" ? REFUSED : "No microphone was found.");
    } finally {
      this.asking = false;
      this.draw();
    }
  }

  stop() {
    clearTimeout(this.timer);
    if (this.recording?.state === "recording") this.recording.stop();
  }

  /** The recorder has given all that it has. */
  end(stream) {
    for (const track of stream.getTracks()) track.stop();
    const type = this.recording.mimeType.split(";")[0];
    this.recording = null;
    this.draw();
    const file = new File(this.chunks, `recording.${type === "audio/mp4" ? "m4a" : "webm"}`, { type });
    this.chunks = [];
    if (!file.size) return announce("Nothing was recorded.");
    spoken.add(file);
    announce("Recorded. Send it, or remove it.");
    return this.take(file);
  }

  draw() {
    const on = this.recording !== null;
    this.button.setAttribute("aria-label", on ? STOP : RECORD);
    this.button.classList.toggle("recording", on);
    this.button.replaceChildren(this.icons[on ? 1 : 0]);
  }
}
