// A worker that colours code: what takes it long holds up no page. Each language is loaded when it is first asked for.

const PARTS = /<span class="([^"]*)">|<\/span>|[^<]+/g;
const SIGNS = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };

addEventListener("message", async ({ data: { number, text, language } }) => {
  try {
    const { default: highlighter } = await import("./vendor/highlight/core.min.js");
    if (!highlighter.getLanguage(language)) {
      highlighter.registerLanguage(language, (await import(`./vendor/highlight/${language}.min.js`)).default);
    }
    const { value } = highlighter.highlight(text, { language, ignoreIllegals: true });
    postMessage({ number, pieces: piecesOf(value) });
  } catch {
    postMessage({ number, pieces: [] }); // it stays as it is
  }
});

/** The library writes markup, which no page of ours reads: each piece of the text, with its innermost class. */
function piecesOf(markup) {
  const open = [];
  const pieces = [];
  for (const [part, name] of markup.matchAll(PARTS)) {
    if (name !== undefined) open.push(name);
    else if (part === "</span>") open.pop();
    else pieces.push([part.replace(/&(?:amp|lt|gt|quot|#x27);/g, (sign) => SIGNS[sign]), open.at(-1) ?? ""]);
  }
  return pieces;
}
