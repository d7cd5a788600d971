// The decisions of a lock among processes. Pure: what is seen on the disk goes in, what is to be done comes out.

/** Who made a claim, as its file says. */
export interface ClaimOwner {
  readonly pid: number
  /** Empty where start times cannot be learned. */
  readonly startedAt: string
  /** Where `pid` means something. */
  readonly place: string
}

/** What can be learned here of the process that a claim names. */
export interface OwnerSigns {
  readonly place: string
  readonly facts: { readonly startedAt: string; readonly zombie: boolean } | undefined
  /** There is a process of that number. */
  readonly answers: boolean
}

/** `unseen`: nothing here can tell; only its heartbeat can. */
export type OwnerVerdict = 'alive' | 'dead' | 'unseen'

/** Nobody is taken for dead who may live: not who is stopped, not who is elsewhere, not who cannot be looked at. */
export function judgeOwner(owner: ClaimOwner | undefined, signs: OwnerSigns): OwnerVerdict {
  if (owner === undefined || owner.place !== signs.place) return 'unseen'
  if (!signs.answers) return 'dead'
  if (signs.facts === undefined || owner.startedAt === '') return 'unseen'
  return signs.facts.zombie || signs.facts.startedAt !== owner.startedAt ? 'dead' : 'alive'
}

/** What a contender sees of the claims of one name. Tokens are ordered by age. */
export interface ClaimScene {
  /** When this contender came, in the form that tokens begin with. */
  readonly arrival: string
  /** Its own claim; undefined: it has announced none. */
  readonly announced: string | undefined
  /** Its own claim was there when it looked. */
  readonly isListed: boolean
  /** The claims of those who are not known to be dead. */
  readonly others: readonly string[]
}

/** What a contender does next. After `announce` it looks at once, after `stay`, `wait` and `withdraw` in a while. */
export type ClaimStep = 'hold' | 'announce' | 'stay' | 'withdraw' | 'wait'

/** Alone means holding. Among several, all but the eldest step back, so that one of them will be alone. */
export function planClaim({ arrival, announced, isListed, others }: ClaimScene): ClaimStep {
  const isEldest = others.every((other) => (announced ?? arrival) < other)
  if (announced === undefined) return isEldest ? 'announce' : 'wait'
  if (!isEldest) return 'withdraw'
  if (!isListed) return 'announce'
  return others.length === 0 ? 'hold' : 'stay'
}

/** The text of a claim. */
export function claimText({ pid, startedAt, place }: ClaimOwner): string {
  return JSON.stringify({ version: 1, pid, startedAt, place })
}

/** Undefined: nobody can be found by it. */
export function readClaim(text: string): ClaimOwner | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { pid, startedAt, place } = value as Partial<Record<string, unknown>>
  return typeof pid === 'number' &&
    Number.isSafeInteger(pid) &&
    pid > 0 &&
    typeof startedAt === 'string' &&
    typeof place === 'string'
    ? { pid, startedAt, place }
    : undefined
}
