/**
 * Makes the children of an element equal to those of another, with as few changes as possible: elements that stay keep their
 * selection, scroll position and listeners. `data-own` marks elements that we added to the text.
 */
export function morphChildren(element: Element, wanted: DocumentFragment | Element): void {
  const current = [...element.childNodes].filter((node) => !isOurs(node));
  const target = [...wanted.childNodes];
  target.forEach((node, index) => {
    const old = current[index];
    if (!old) element.append(node);
    else if (!morph(old, node)) old.replaceWith(node);
  });
  for (const old of current.slice(target.length)) old.remove();
}

function isOurs(node: Node): boolean {
  return node instanceof HTMLElement && node.dataset["own"] !== undefined;
}

/** Makes `old` equal to `wanted`; false if they are too different for that. */
function morph(old: Node, wanted: Node): boolean {
  if (old.nodeType !== wanted.nodeType || old.nodeName !== wanted.nodeName) return false;
  if (old instanceof Element && wanted instanceof Element) {
    for (const { name } of [...old.attributes])
      if (!wanted.hasAttribute(name) && !name.startsWith("data-")) old.removeAttribute(name);
    for (const { name, value } of [...wanted.attributes])
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    morphChildren(old, wanted);
  } else if (old.nodeValue !== wanted.nodeValue) {
    old.nodeValue = wanted.nodeValue;
  }
  return true;
}
