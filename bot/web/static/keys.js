// What keys do, in one place: which are a person's and which an input method's, which sends, which closes.

/** Whether an input method takes the key. Safari's last one of a word says so by its code alone. */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

/** Call `act(event)` for each key that is pressed within the element, unless an input method takes it. */
export function onKey(element, act) {
  element.addEventListener("keydown", (event) => {
    if (!isComposing(event)) act(event);
  });
}

/** Enter sends a form from its field of several lines, Shift+Enter begins a new one; a key that is held sends nothing. */
export function sendOnEnter(field, form) {
  onKey(field, (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.altKey) return;
    event.preventDefault();
    if (!event.repeat) form.requestSubmit();
  });
}

/** Escape closes what is open; what stands around it stays as it is. */
export function onEscape(element, isOpen, close) {
  onKey(element, (event) => {
    if (event.key !== "Escape" || !isOpen()) return;
    event.stopPropagation();
    close();
  });
}

/** A menu made of `details`: Escape folds it and gives the focus back, and so does leaving it without the focus. */
export function foldsAway(details) {
  onEscape(details, () => details.open, () => {
    details.open = false;
    details.firstElementChild.focus();
  });
  details.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !details.contains(event.relatedTarget)) details.open = false;
  });
}
