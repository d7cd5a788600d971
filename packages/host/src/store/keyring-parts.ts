// One value in several items of a keyring, where an item cannot hold it. The head says which parts there are; parts of a set are never written again, so that a
// reader has the old value or the new one.
import { createHash, randomBytes } from 'node:crypto'

/** The items of one service. */
export interface KeyringItems {
  get(account: string): Promise<string | undefined>
  set(account: string, text: string): Promise<void>
  remove(account: string): Promise<void>
  accounts(): Promise<readonly string[]>
}

/** What stands under an account. */
export type ItemReading =
  | { readonly kind: 'found'; readonly text: string }
  | { readonly kind: 'absent' }
  | { readonly kind: 'damaged'; readonly because: string }

/** A head, as in `parts 1 COUNT SET DIGEST`. Nothing else that is kept begins so. */
const HEAD = /^parts 1 (\d{1,4}) ([0-9a-f]{16}) ([0-9a-f]{64})$/
/** A writer that comes between two looks changes the head; so many in a row are not waited for. */
const LOOKS_MAX = 8

/** Reads a value, whole or in parts. */
export async function readParts(items: KeyringItems, account: string): Promise<ItemReading> {
  let head = await items.get(account)
  for (let looks = 0; looks < LOOKS_MAX; looks++) {
    if (head === undefined) return { kind: 'absent' }
    const [, count, set, digest] = HEAD.exec(head) ?? []
    if (count === undefined || set === undefined) return { kind: 'found', text: head }
    const parts: string[] = []
    for (let number = 0; number < Number(count); number++)
      parts.push((await items.get(partOf(account, set, number))) ?? '')
    const text = parts.join('')
    if (digestOf(text) === digest) return { kind: 'found', text }
    const now = await items.get(account)
    if (now === head) break
    head = now
  }
  return { kind: 'damaged', because: 'some of its parts are missing' }
}

/** Writes a value; the caller sees to it that nobody else writes the same one now. */
export async function writeParts(
  items: KeyringItems,
  account: string,
  { text, partChars }: { readonly text: string; readonly partChars: number | undefined },
): Promise<void> {
  if (partChars === undefined) return items.set(account, text)
  const parts = text.length <= partChars ? [] : cutParts(text, partChars)
  const set = randomBytes(8).toString('hex')
  for (const [number, part] of parts.entries()) await items.set(partOf(account, set, number), part)
  await items.set(account, parts.length === 0 ? text : `parts 1 ${parts.length} ${set} ${digestOf(text)}`)
  await removeSets(items, account, set)
}

/** Removes a value, with all parts that it ever had if there are such things. */
export async function removeParts(
  items: KeyringItems,
  account: string,
  { partChars }: { readonly partChars: number | undefined },
): Promise<void> {
  await items.remove(account)
  if (partChars !== undefined) await removeSets(items, account, undefined)
}

/** Also those of a writer that was killed. */
async function removeSets(items: KeyringItems, account: string, kept: string | undefined): Promise<void> {
  for (const other of await items.accounts())
    if (other.startsWith(`${account}.`) && (kept === undefined || !other.startsWith(`${account}.${kept}.`)))
      await items.remove(other)
}

/** Characters that are two units long stay whole. */
function cutParts(text: string, partChars: number): string[] {
  const parts: string[] = []
  let part = ''
  for (const character of text) {
    if (part.length + character.length > partChars) {
      parts.push(part)
      part = ''
    }
    part += character
  }
  return [...parts, part]
}

function partOf(account: string, set: string, number: number): string {
  return `${account}.${set}.${number}`
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
