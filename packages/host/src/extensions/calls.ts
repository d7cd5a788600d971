// Calls contributors: one after the other, in the order of their registration, each for itself. One that throws or is late is named and disturbs nobody.
import { cleanLine, HostError, untilAborted } from '../base/index.ts'
import type { ContributorKind, ContributorKinds } from './contributors.ts'
import type { ExtensionRegistry, Registered } from './registry.ts'

/** A contributor that failed. */
export interface ExtensionFault {
  readonly extension: string
  readonly kind: ContributorKind
  /** The callback. */
  readonly callback: string
  /** For a person; cleaned and cut. */
  readonly message: string
}

/** What contributors are called with. */
export interface ContributorCallsInit {
  readonly registry: ExtensionRegistry
  onFault(fault: ExtensionFault): void
  setTimer(callback: () => void, ms: number): object
  clearTimer(timer: object): void
}

/** Longest wait for one callback, in milliseconds; whoever needs longer works on by itself. */
export const CALLBACK_MS_MAX = 30_000
const MESSAGE_CHARS_MAX = 500

/** One call of a contributor. */
export interface ContributorCall<Kind extends ContributorKind, Answer> {
  readonly kind: Kind
  /** For faults. */
  readonly callback: string
  readonly signal?: AbortSignal | undefined
  call(contributor: ContributorKinds[Kind], extension: string): Answer | Promise<Answer>
}

/** How the contributors of one host are called. */
export class ContributorCalls {
  readonly #init: ContributorCallsInit

  constructor(init: ContributorCallsInit) {
    this.#init = init
  }

  /** Is there anybody of this kind? */
  has(kind: ContributorKind): boolean {
    return this.#init.registry.all(kind).length > 0
  }

  /** In the order of registration. */
  all<Kind extends ContributorKind>(kind: Kind): readonly Registered<ContributorKinds[Kind]>[] {
    return this.#init.registry.all(kind)
  }

  /**
   * What they answer, in their order; those that have nothing to say or fail are left out.
   * @throws {HostError} `CANCELLED` on abort; nobody further is called.
   */
  async gather<Kind extends ContributorKind, Answer>(
    request: ContributorCall<Kind, Answer | undefined>,
  ): Promise<Answer[]> {
    const answers: Answer[] = []
    for (const one of this.#init.registry.all(request.kind)) {
      const answer = await this.one(one, request)
      if (answer !== undefined) answers.push(answer)
    }
    return answers
  }

  /**
   * What the first of them answers that has something to say.
   * @throws {HostError} `CANCELLED` on abort.
   */
  async first<Kind extends ContributorKind, Answer>(
    request: ContributorCall<Kind, Answer | undefined>,
  ): Promise<Answer | undefined> {
    for (const one of this.#init.registry.all(request.kind)) {
      const answer = await this.one(one, request)
      if (answer !== undefined) return answer
    }
    return undefined
  }

  /** Calls one of them. @returns undefined when it fails. @throws {HostError} `CANCELLED` on abort. */
  async one<Kind extends ContributorKind, Answer>(
    { contributor, extension }: Registered<ContributorKinds[Kind]>,
    request: ContributorCall<Kind, Answer | undefined>,
  ): Promise<Answer | undefined> {
    const { signal, call } = request
    throwIfAborted(signal)
    try {
      const answer = call(contributor, extension)
      return answer instanceof Promise ? await this.#inTime(answer, signal) : answer
    } catch (error) {
      throwIfAborted(signal)
      this.#fault(request, extension, error)
      return undefined
    }
  }

  /** At once, where nothing is waited for. */
  tell<Kind extends ContributorKind>(request: ContributorCall<Kind, void>): void {
    for (const { contributor, extension } of this.#init.registry.all(request.kind)) {
      try {
        const answer = request.call(contributor, extension)
        // Whoever answers later all the same must not end the process.
        if (answer instanceof Promise) answer.catch((error: unknown) => this.#fault(request, extension, error))
      } catch (error) {
        this.#fault(request, extension, error)
      }
    }
  }

  async #inTime<Answer>(answer: Promise<Answer>, signal: AbortSignal | undefined): Promise<Answer> {
    let timer: object | undefined
    const late = new Promise<never>((_, reject) => {
      const why = new HostError('INTERNAL', `it did not answer within ${CALLBACK_MS_MAX} ms`)
      timer = this.#init.setTimer(() => reject(why), CALLBACK_MS_MAX)
    })
    try {
      return await Promise.race([untilAborted(answer, signal), late])
    } finally {
      if (timer !== undefined) this.#init.clearTimer(timer)
      answer.catch(() => {})
    }
  }

  #fault({ kind, callback }: { kind: ContributorKind; callback: string }, extension: string, error: unknown): void {
    const text = error instanceof Error ? error.message : String(error)
    this.#init.onFault({ extension, kind, callback, message: cleanLine(text, MESSAGE_CHARS_MAX) })
  }
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new HostError('CANCELLED', 'Cancelled by the caller', { cause: signal.reason })
}
