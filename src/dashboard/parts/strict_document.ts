// The page's content security policy forbids style elements and style attributes, which the terminal library
// creates. This file turns them into constructed style sheets and styles set by script, which the policy
// allows.

/** A replacement for a style element. Its text becomes a constructed style sheet of the document. */
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

/** An element that sets the style by script when its attribute `style` is set. */
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

/** The document for the terminal library. Elements that it creates comply with the page's policy. */
export const strictDocument: Document = new Proxy(document, {
  get(target, key) {
    if (key === 'createElement') return createElement;
    const value: unknown = Reflect.get(target, key, target);
    return typeof value === 'function' ? value.bind(target) : value;
  },
});

/** Runs `work`, in which the library creates styles with the global document instead of the given one. */
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
