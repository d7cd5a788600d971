// The servers of the simulated world as programs: what they list, in what mood they are, and what they have listed so far.
import type { Random } from './random.ts'

/** How a server takes part; a step can change it at any time. */
export type Mood =
  | 'good'
  | 'slow'
  | 'flaky'
  | 'start-fails'
  | 'start-hangs'
  | 'list-fails'
  | 'calls-fail'
  | 'refuses'
  | 'gone'

/** Every mood, with how likely a step chooses it. */
export const MOODS: Readonly<Record<Mood, number>> = {
  good: 55,
  slow: 10,
  flaky: 16,
  'start-fails': 8,
  'start-hangs': 6,
  'list-fails': 6,
  'calls-fail': 8,
  refuses: 4,
  gone: 4,
}

/** What a call leads to. */
export type Act =
  | 'answer'
  | 'slow'
  | 'silent'
  | 'tool-error'
  | 'rpc-error'
  | 'progress'
  | 'ask'
  | 'huge'
  | 'malformed'
  | 'crash-before'
  | 'crash-after'
  | 'half'

const GOOD_ACTS: Partial<Record<Act, number>> = { answer: 80, slow: 8, progress: 4, ask: 4, 'tool-error': 4 }
const BAD_ACTS: Record<Act, number> = {
  answer: 30,
  slow: 12,
  silent: 6,
  'tool-error': 5,
  'rpc-error': 6,
  progress: 6,
  ask: 8,
  huge: 4,
  malformed: 4,
  'crash-before': 6,
  'crash-after': 7,
  half: 6,
}

/** What a server does at its start. */
export type Beginning =
  | 'ok'
  | 'slow'
  | 'silent'
  | 'exit-at-once'
  | 'exit-on-first'
  | 'exit-on-unknown'
  | 'error'
  | 'noise'
  | 'spawn-error'

/** Which eras a program speaks; fixed for its life. */
export type Eras = 'legacy' | 'modern' | 'both'

/** The beginning of the keys of the hosted server's programs. */
export const HOSTED = 'h2.sim/'
const POOL: readonly string[] = ['add', 'find', 'read', 'send', 'stop', 'idem']

/** One server program. All its processes, or all its clients, share what is here. */
export class Program {
  readonly key: string
  eras: Eras
  mood: Mood = 'good'
  /** Counts the changes of the tools. */
  revision = 0
  /** What each revision listed, by number. */
  readonly listings: (readonly string[])[] = []
  /** Sessions over HTTP that it still knows, with the client that each belongs to. */
  readonly sessions: Map<string, string> = new Map()
  sessionCount = 0
  /** Makes the next cursor of a listing that never ends; undefined: its listings end. */
  endless: (() => string) | undefined
  /** What the last request over HTTP was signed with. */
  lastAuthorization: string | undefined

  constructor(key: string, eras: Eras, random: Random) {
    this.key = key
    this.eras = eras
    this.listings.push(chooseTools(random))
  }

  /** What every tool of it has besides: hosts show a hosted server's tools only with the connector that they belong to. */
  get toolExtras(): { readonly _meta?: object } {
    return this.key.startsWith(HOSTED) ? { _meta: { 'convoke/connector': { id: 'post', name: 'Post' } } } : {}
  }

  get tools(): readonly string[] {
    return this.listings[this.revision] ?? []
  }

  /** New tools; the same ones, but a new revision, are possible too. */
  change(random: Random): void {
    this.listings.push(random.chance(25) ? this.tools : chooseTools(random))
    this.revision += 1
  }

  beginning(random: Random): Beginning {
    switch (this.mood) {
      case 'start-fails':
        return random.pick(['exit-at-once', 'exit-on-first', 'error', 'spawn-error'] as const)
      case 'start-hangs':
        return random.pick(['silent', 'slow', 'silent'] as const)
      case 'gone':
        return 'spawn-error'
      case 'slow':
        return 'slow'
      case 'flaky':
        return random.pick(['ok', 'noise', 'slow', 'exit-on-unknown', 'exit-on-first', 'silent', 'ok', 'ok'] as const)
      default:
        return random.chance(5) ? 'noise' : 'ok'
    }
  }

  act(random: Random): Act {
    return random.weighted(this.mood === 'calls-fail' || this.mood === 'flaky' ? BAD_ACTS : GOOD_ACTS)
  }

  /** How long it thinks before it answers, in ms. */
  thinkMs(random: Random): number {
    return this.mood === 'slow' ? random.between(20, 900) : random.between(0, 6)
  }
}

function chooseTools(random: Random): string[] {
  return POOL.filter(() => random.chance(60))
}

/** The programs of one world; made when they are first heard of, and the same ever after. */
export class Programs {
  readonly #random: Random
  readonly #all = new Map<string, Program>()

  constructor(random: Random) {
    this.#random = random
  }

  get all(): readonly Program[] {
    return [...this.#all.values()]
  }

  of(key: string): Program {
    let program = this.#all.get(key)
    if (program === undefined) {
      const eras = this.#random.weighted<Eras>({ legacy: 50, modern: 25, both: 25 })
      this.#all.set(key, (program = new Program(key, eras, this.#random)))
    }
    return program
  }
}
