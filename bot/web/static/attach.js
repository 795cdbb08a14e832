// Files for the next message: picked, dropped on the page or pasted, and shown until they are sent.

import { announce, DATA, h, icon, shown } from "./dom.js";

const MOST = 10; // files of a message; how large they may be the server says

/** As people read it: 3.4 MB. */
export function sized(bytes) {
  const [unit, step] = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]].find(([, each]) => bytes >= each) ?? ["bytes", 1];
  return `${(bytes / step).toFixed(step > 1 ? 1 : 0).replace(/\.0$/, "")} ${unit}`;
}

/** Files as a list of chips; `act(file)` gives what stands at the end of each. */
export function chips(files, act) {
  return h("ul", { class: "files", "aria-label": "Files" }, files.map((file) =>
    h("li", { class: "file" }, h("span", { class: "file-name", ...DATA }, shown(file.name)), h("span", { class: "muted" }, sized(file.size)), ...act(file))));
}

export class Attached {
  /** `changed()` is told when files came or went. */
  constructor(place, changed) {
    Object.assign(this, { place, changed, files: [] });
  }

  add(files) {
    const room = MOST - this.files.length;
    if (files.length > room) announce(`At most ${MOST} files in one message.`);
    this.files = [...this.files, ...[...files].slice(0, room)];
    this.draw();
  }

  /** The files, which are gone from here then. */
  take() {
    const { files } = this;
    this.files = [];
    this.draw();
    return files;
  }

  draw() {
    const drop = (file) => [h("button", { type: "button", class: "icon-button", "aria-label": `Remove ${file.name}`, onclick: () => {
      this.files = this.files.filter((each) => each !== file);
      this.draw();
    } }, icon("cross"))];
    this.place.replaceChildren(...(this.files.length ? [chips(this.files, drop)] : []));
    this.changed();
  }

  /** Take what is picked with `picker`, pasted into `box`, or dropped on `page`. */
  listen(picker, box, page) {
    picker.addEventListener("change", () => {
      this.add(picker.files);
      picker.value = "";
      box.focus();
    });
    box.addEventListener("paste", (event) => {
      const { files } = event.clipboardData;
      if (!files.length) return;
      event.preventDefault();
      this.add(files);
    });
    const holds = (event) => event.dataTransfer?.types.includes("Files");
    for (const kind of ["dragover", "drop", "dragleave"]) {
      page.addEventListener(kind, (event) => {
        if (!holds(event)) return;
        event.preventDefault();
        page.classList.toggle("dropping", kind === "dragover");
        if (kind === "drop") this.add(event.dataTransfer.files);
      });
    }
  }
}
