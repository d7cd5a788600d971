// Containers that cannot grow without end.

/** A map that forgets what was used longest ago. */
export class BoundedMap<Key, Value> {
  readonly #entries = new Map<Key, Value>()
  readonly #entriesMax: number

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax
  }

  get size(): number {
    return this.#entries.size
  }

  /** The value, which counts as a use. */
  get(key: Key): Value | undefined {
    const value = this.#entries.get(key)
    if (value === undefined) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, value)
    return value
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size <= this.#entriesMax) return
    const [oldest] = this.#entries.keys()
    this.#entries.delete(oldest as Key)
  }

  delete(key: Key): void {
    this.#entries.delete(key)
  }
}

/** A list that keeps its first members and counts the rest. */
export class BoundedList<Item> {
  readonly #items: Item[] = []
  readonly #itemsMax: number
  #dropped = 0

  constructor(itemsMax: number) {
    this.#itemsMax = itemsMax
  }

  get items(): readonly Item[] {
    return this.#items
  }

  /** How many did not fit. */
  get droppedCount(): number {
    return this.#dropped
  }

  push(item: Item): void {
    if (this.#items.length < this.#itemsMax) this.#items.push(item)
    else this.#dropped += 1
  }
}

/** `text`, or its first `charsMax - 1` characters and an ellipsis; never half a surrogate pair. */
export function cutText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text
  const last = text.charCodeAt(charsMax - 2)
  const isHighSurrogate = last >= 0xd800 && last <= 0xdbff
  return `${text.slice(0, isHighSurrogate ? charsMax - 2 : charsMax - 1)}…`
}
