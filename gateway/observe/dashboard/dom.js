/**
 * Elements: made from values, and brought up to date in place.
 *
 * Text from the gateway goes into text nodes and attribute values alone; nothing here parses HTML. Styles are set through the
 * style object, because the page's policy forbids style attributes.
 */

const SVG = "http://www.w3.org/2000/svg";
/** Characters that would turn the text around them or hide; they are shown by their number. Line ends and tabs stand. */
const INVISIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff]/g;

const visible = (text) => String(text).replace(INVISIBLE, (found) => `[U+${found.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
/** Attributes that people read; others are addresses and names. */
const READ = new Set(["title", "aria-label"]);

/** Make an HTML element; children are nodes, texts, numbers, lists of these, or nothing. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Make an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "style") Object.entries(value).forEach(([key, each]) => element.style.setProperty(key, each));
    else element.setAttribute(name, value === true ? "" : READ.has(name) ? visible(value) : String(value));
  }
  const shown = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  element.append(...shown.map((child) => (child instanceof Node ? child : visible(child))));
  return element;
}

/**
 * Make the children of `old` equal to those of `fresh` while keeping the elements that are there: focus, open details, scroll
 * positions and a chart under the pointer survive an update.
 */
export function update(old, fresh) {
  const wanted = [...fresh.childNodes];
  const keyed = new Map([...old.children].filter((child) => child.dataset?.key).map((child) => [child.dataset.key, child]));
  wanted.forEach((node, place) => {
    const current = old.childNodes[place];
    const same = (node.dataset?.key && keyed.get(node.dataset.key)) || current;
    if (!same || !alike(same, node)) {
      old.insertBefore(node, current ?? null);
    } else {
      if (same !== current) old.insertBefore(same, current ?? null);
      adopt(same, node);
    }
  });
  while (old.childNodes.length > wanted.length) old.lastChild.remove();
}

function alike(old, fresh) {
  // A chart draws itself, so it takes no other element's place and gives its own to none.
  return old.nodeName === fresh.nodeName && old.dataset?.key === fresh.dataset?.key && !old.redraw === !fresh.redraw;
}

function adopt(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.redraw) {
    old.redraw(fresh.chart);
    old.setAttribute("aria-label", fresh.getAttribute("aria-label"));
    return;
  }
  const kept = old.nodeName === "DETAILS" ? ["open", "style"] : ["style"];
  for (const { name } of [...old.attributes]) if (!kept.includes(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) {
    if (!kept.includes(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.style.cssText !== fresh.style.cssText) old.style.cssText = fresh.style.cssText;
  update(old, fresh);
}
