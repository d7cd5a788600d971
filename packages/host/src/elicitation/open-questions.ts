// The questions that are open at this moment: how many there may be, and that each ends exactly once and is forgotten at once.
import type { PendingQuestion, QuestionOutcome } from '../events/index.ts'
import type { QuestionAnswer } from './answer.ts'
import type { QuestionFacts } from './policy.ts'

/** How a question ended: with an answer for its server, with an error for it, or with nobody waiting any more. */
export type Settlement = { readonly by: QuestionOutcome['by']; readonly reason: string } & (
  | { readonly kind: 'answered'; readonly answer: QuestionAnswer }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'withdrawn' }
)

/** `reviewing`: nobody but the reviewer knows of it yet. */
export type QuestionStage = 'reviewing' | 'asked'

/** One open question. */
export class OpenQuestion {
  readonly facts: QuestionFacts
  /** Resolves once; never rejects. */
  readonly settled: Promise<Settlement>
  stage: QuestionStage = 'reviewing'
  question: PendingQuestion
  readonly #ending = new AbortController()
  readonly #forget: () => void
  #resolve: ((settlement: Settlement) => void) | undefined

  constructor(question: PendingQuestion, facts: QuestionFacts, forget: () => void) {
    this.question = question
    this.facts = facts
    this.#forget = forget
    this.settled = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  /** Aborts when it is over, for whoever still works on an answer. */
  get signal(): AbortSignal {
    return this.#ending.signal
  }
  get isOver(): boolean {
    return this.#resolve === undefined
  }

  /** The first one counts. @returns whether it was this one. */
  settle(settlement: Settlement): boolean {
    const resolve = this.#resolve
    if (resolve === undefined) return false
    this.#resolve = undefined
    this.#forget()
    resolve(settlement)
    this.#ending.abort()
    return true
  }
}

/** Limits of {@link OpenQuestions}. */
export interface OpenQuestionLimits {
  readonly perServerMax: number
  readonly questionsMax: number
}

/** All open questions of a host, by their public id. */
export class OpenQuestions {
  readonly #limits: OpenQuestionLimits
  readonly #open = new Map<string, OpenQuestion>()
  readonly #countOf = new Map<string, number>()

  constructor(limits: OpenQuestionLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#open.size
  }

  /** In the order in which they came. */
  get all(): readonly OpenQuestion[] {
    return [...this.#open.values()]
  }

  get(id: string): OpenQuestion | undefined {
    return this.#open.get(id)
  }

  /** Undefined: there are too many, of this server or in all. */
  add(question: PendingQuestion, facts: QuestionFacts): OpenQuestion | undefined {
    const { id, server } = question
    const count = this.#countOf.get(server) ?? 0
    if (count >= this.#limits.perServerMax || this.#open.size >= this.#limits.questionsMax) return undefined
    const open = new OpenQuestion(question, facts, () => this.#remove(id, server))
    this.#open.set(id, open)
    this.#countOf.set(server, count + 1)
    return open
  }

  #remove(id: string, server: string): void {
    this.#open.delete(id)
    const count = (this.#countOf.get(server) ?? 1) - 1
    if (count === 0) this.#countOf.delete(server)
    else this.#countOf.set(server, count)
  }
}
