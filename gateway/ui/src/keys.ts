/**
 * Whether the key is one of an input method, which writes Japanese or Chinese, for example: it chooses or leaves words, and is
 * none of the page. Safari reports the Enter that ends a composition after it, with 229 as its code.
 */
export function isComposing(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === 229;
}
