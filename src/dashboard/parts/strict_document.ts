// The page forbids styles in the document. The terminal's library makes some: here they become style sheets
// of script, and styles of elements, which the page's policy allows.

/** A stand-in for a style element, whose text becomes a sheet of the document. */
function sheetElement(): HTMLElement {
  const element = document.createElement('span');
  const sheet = new CSSStyleSheet();
  element.hidden = true;
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(element, 'textContent', { set: (text: string) => sheet.replaceSync(text) });
  Object.defineProperty(element, 'remove', {
    value: () => {
      document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
      Element.prototype.remove.call(element);
    },
  });
  return element;
}

/** Whose attribute `style`, when set, becomes the same style by script. */
function styledElement(kind: string): HTMLElement {
  const element = document.createElement(kind);
  if (kind !== 'span') return element;
  Object.defineProperty(element, 'setAttribute', {
    value: (name: string, value: string) => {
      if (name === 'style') element.style.cssText = value;
      else Element.prototype.setAttribute.call(element, name, value);
    },
  });
  return element;
}

const createElement = (kind: string): HTMLElement =>
  kind === 'style' ? sheetElement() : styledElement(kind);

/** The document for the terminal's library: elements that it makes obey the policy of the page. */
export const strictDocument: Document = new Proxy(document, {
  get(target, key) {
    if (key === 'createElement') return createElement;
    const value: unknown = Reflect.get(target, key, target);
    return typeof value === 'function' ? value.bind(target) : value;
  },
});

/** Runs `work`, in which the library makes styles without asking for the document that it was given. */
export function withStrictStyles(work: () => void): void {
  const { createElement: native } = Document.prototype;
  Object.defineProperty(document, 'createElement', {
    configurable: true,
    value: (kind: string) => (kind === 'style' ? sheetElement() : native.call(document, kind)),
  });
  try {
    work();
  } finally {
    Reflect.deleteProperty(document, 'createElement');
  }
}
