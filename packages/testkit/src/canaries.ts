// Secrets that are planted in a test and searched for in everything that came out of it.
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'

/** Something to search: a text, bytes, a value (an event, an error with its causes), a file or a folder with all in it. */
export type Watched =
  | { readonly kind: 'content'; readonly content: string | Buffer }
  | { readonly kind: 'value'; readonly value: unknown }
  /** Read when it is searched. `except`: paths within it that may hold secrets, as the store itself does. */
  | { readonly kind: 'path'; readonly path: string; readonly except?: readonly string[] }
  /** Asked when it is searched. */
  | { readonly kind: 'later'; readonly content: () => string | Buffer }

const INSPECTED = { depth: 20, maxArrayLength: null, maxStringLength: null, showHidden: true } as const

/**
 * Plants secrets and proves that none came out.
 *
 * ```ts no-run
 * import { Canaries } from '@convoke/testkit'
 *
 * const canaries = new Canaries()
 * const secret = canaries.plant('client secret')
 * console.error(secret)
 * canaries.watch('what was written', { kind: 'later', content: () => 'what was written' })
 * canaries.watch('home', { kind: 'path', path: '/home', except: ['credentials.json'] })
 * canaries.assertNowhere()
 * ```
 */
export class Canaries {
  readonly #secrets = new Map<string, string>()
  readonly #watched: { readonly name: string; readonly what: Watched }[] = []

  /** A new secret that is found again: it has characters that change in every encoding. */
  plant(name: string): string {
    return this.add(name, `canary/${randomBytes(9).toString('hex')}+"${randomBytes(9).toString('hex')}~`)
  }

  /** The same in the characters that a header, a URL and a JWT may hold as they are, for places that take no others. */
  plantPlain(name: string): string {
    return this.add(name, `canary-${randomBytes(18).toString('hex')}`)
  }

  /** Searches for a secret that somebody else made, for example a token that was issued. Under 8 characters it is refused: it would be found by chance. */
  add(name: string, secret: string): string {
    if (secret.length < 8) throw new Error(`The secret "${name}" is too short to be searched for`)
    this.#secrets.set(name, secret)
    return secret
  }

  /** A text or bytes, or one of the other kinds. */
  watch(name: string, what: string | Buffer | Watched): void {
    const isContent = typeof what === 'string' || Buffer.isBuffer(what)
    this.#watched.push({ name, what: isContent ? { kind: 'content', content: what } : what })
  }

  /** Where each secret was found, as `SECRET (FORM) in PLACE`. Nothing of a secret is in it. */
  found(): readonly string[] {
    const places = this.#watched.flatMap(({ name, what }) => contentsOf(name, what))
    return [...this.#secrets].flatMap(([name, secret]) =>
      formsOf(secret).flatMap(([form, needle]) =>
        places.filter(({ content }) => content.includes(needle)).map(({ place }) => `${name} (${form}) in ${place}`),
      ),
    )
  }

  /**
   * @throws {Error} that names every place where a secret was found.
   * @throws {Error} if no secret was planted or nothing is watched: it would prove nothing.
   */
  assertNowhere(): void {
    if (this.#secrets.size === 0 || this.#watched.length === 0) throw new Error('Nothing was planted or watched')
    const found = this.found()
    if (found.length > 0) throw new Error(`Secrets came out:\n  ${found.join('\n  ')}`)
  }
}

interface Place {
  readonly place: string
  readonly content: Buffer
}

function contentsOf(name: string, what: Watched): Place[] {
  switch (what.kind) {
    case 'content':
      return [{ place: name, content: Buffer.from(what.content) }]
    case 'later':
      return [{ place: name, content: Buffer.from(what.content()) }]
    case 'value':
      return [
        { place: name, content: Buffer.from(inspect(what.value, INSPECTED)) },
        { place: `${name} as JSON`, content: Buffer.from(jsonOf(what.value)) },
      ]
    case 'path':
      return filesOf(what.path, new Set((what.except ?? []).map((path) => join(what.path, path)))).map((path) => ({
        place: `${name}: ${path}`,
        content: Buffer.concat([Buffer.from(`${path}\n`), readFileSync(path)]),
      }))
  }
}

/** Also what an error keeps to itself: its message and stack, and those of its causes. */
function jsonOf(value: unknown): string {
  const seen = new Set<unknown>()
  const show = (_key: string, part: unknown): unknown => {
    if (typeof part === 'bigint') return String(part)
    if (typeof part !== 'object' || part === null) return part
    if (seen.has(part)) return 'seen before'
    seen.add(part)
    if (part instanceof Map || part instanceof Set) return [...part]
    if (!(part instanceof Error)) return part
    return { ...part, message: part.message, stack: part.stack, cause: part.cause }
  }
  return JSON.stringify(value, show) ?? ''
}

function filesOf(path: string, except: ReadonlySet<string>): string[] {
  if (except.has(path)) return []
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats?.isFile() === true) return [path]
  if (stats?.isDirectory() !== true) return []
  return readdirSync(path).flatMap((name) => filesOf(join(path, name), except))
}

/** A secret as it may stand somewhere. In base64 it looks different at each of three offsets, of which the whole groups are searched for. */
function formsOf(secret: string): readonly (readonly [string, string])[] {
  const quoted = JSON.stringify(secret).slice(1, -1)
  const forms: (readonly [string, string])[] = [
    ['raw', secret],
    ['percent-encoded', encodeURIComponent(secret)],
    ['form-encoded', new URLSearchParams([['', secret]]).toString().slice(1)],
    ['JSON-escaped', quoted],
    ['JSON in JSON', JSON.stringify(quoted).slice(1, -1)],
    ['hex', Buffer.from(secret).toString('hex')],
    ...[0, 1, 2].flatMap((offset) => {
      const whole = base64At(secret, offset)
      return [
        ['base64', whole],
        ['base64url', whole.replaceAll('+', '-').replaceAll('/', '_')],
      ] as const
    }),
  ]
  const seen = new Set<string>()
  return forms.filter(([, needle]) => !seen.has(needle) && seen.add(needle))
}

function base64At(secret: string, offset: number): string {
  const bytes = Buffer.from(secret)
  const start = (3 - offset) % 3
  const end = start + Math.floor((bytes.length - start) / 3) * 3
  return bytes.subarray(start, end).toString('base64')
}
