// What a host and its keyring program say to each other: one JSON object a line, each request with its answer.

/** Why a keyring could not do it. */
export type KeyringFault = 'absent' | 'no-answer' | 'locked' | 'refused' | 'not-installed'

/** A request; `service` is whose items they are. Values go over the pipe only. */
export interface KeyringRequest {
  readonly id: number
  readonly service: string
  readonly order: KeyringOrder
}

/** What is to be done. `partChars`: how much one item holds, in UTF-16 units; absent: everything. */
export type KeyringOrder =
  | { readonly kind: 'get'; readonly account: string }
  | { readonly kind: 'set'; readonly account: string; readonly text: string; readonly partChars?: number }
  | { readonly kind: 'remove'; readonly account: string; readonly partChars?: number }
  | { readonly kind: 'list' }

/** One item of a listing: nothing of its value but what the first words of it say. */
export interface KeyringListed {
  readonly account: string
  readonly bytes: number
  readonly writtenAtMs: number
}

/** What came of it. */
export type KeyringOutcome =
  | { readonly kind: 'found'; readonly text: string }
  | { readonly kind: 'absent' }
  | { readonly kind: 'damaged'; readonly because: string }
  | { readonly kind: 'done' }
  | { readonly kind: 'listed'; readonly items: readonly KeyringListed[] }
  | { readonly kind: 'failed'; readonly because: KeyringFault; readonly detail: string }

/** An answer. */
export interface KeyringAnswer {
  readonly id: number
  readonly outcome: KeyringOutcome
}

const DETAIL_CHARS_MAX = 300

/** What other people's programs say when they fail. No more is done with their sentences than this table does. */
const SENTENCES: readonly (readonly [RegExp, KeyringFault])[] = [
  [/did not receive a reply|NoReply|timed out/i, 'no-answer'],
  [/IsLocked|object locked|prompt (was )?dismissed|interaction is not allowed|before prompt completed/i, 'locked'],
  [/autolaunch|no secret service provider|no DBus session|failed to (connect|open connection)/i, 'absent'],
  [/ServiceUnknown|NameHasNoOwner|not provided by any|was not found|no result found|Could not connect/i, 'absent'],
  [/Cannot find (native binding|module|package)|ERR_MODULE_NOT_FOUND/i, 'not-installed'],
]

/** Sorts a failure by its text. */
export function classifyKeyringFailure(text: string): { because: KeyringFault; detail: string } {
  const because = SENTENCES.find(([sentence]) => sentence.test(text))?.[1] ?? 'refused'
  return { because, detail: text.trim().slice(0, DETAIL_CHARS_MAX) }
}

/** What is kept with a value: when it was written. */
export function writtenText(value: string, writtenAtMs: number): string {
  return `1 ${writtenAtMs} ${value}`
}

/** Undefined: something else has written it. */
export function readWritten(text: string): { value: string; writtenAtMs: number } | undefined {
  const match = /^1 (\d{1,16}) /.exec(text)
  return match === null ? undefined : { value: text.slice(match[0].length), writtenAtMs: Number(match[1]) }
}
