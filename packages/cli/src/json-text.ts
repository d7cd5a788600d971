/** Characters that steer terminals or hide text, and that JSON.stringify writes as they are. */
const UNSAFE =
  /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu

/** Nothing to escape. */
const PLAIN = /^[\n\x20-\x7e]*$/

/**
 * A value as one line of JSON that is safe to show on a terminal: every control and every hidden character is an escape, and
 * decoding gives exactly the value. `indent` (spaces) spreads it over lines for people.
 */
export function jsonText(value: unknown, indent = 0): string {
  const text = JSON.stringify(value, null, indent)
  if (PLAIN.test(text)) return text
  return text.replace(UNSAFE, (found) =>
    [...Array(found.length).keys()]
      .map((index) => `\\u${found.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}
