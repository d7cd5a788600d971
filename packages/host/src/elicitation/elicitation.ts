// Everything that servers ask of a host: decided by the policy, reviewed, shown to a person or parked, and answered once.
import { HostError, type JsonObject, unreachable } from '../base/index.ts'
import type { HostEvent, PendingQuestion, QuestionOutcome } from '../events/index.ts'
import {
  type ClientOffers,
  isRequestRefusal,
  type Platform,
  requestRefusal,
  type ServerRequestContext,
  type ServerRequestHandler,
  type TimerHandle,
} from '../protocol/index.ts'
import { matchAnswer, type QuestionAnswer, readAnswer, readReview } from './answer.ts'
import { type AskCallback, couldNotAnswer, guarded, type HostHandlers } from './handlers.ts'
import { type OpenQuestion, OpenQuestions, type Settlement } from './open-questions.ts'
import { decideElicitation, type ElicitationDecision, type QuestionFacts, type TrustPolicy } from './policy.ts'
import { readQuestion } from './read-question.ts'

/**
 * May answer before a person does: an exact answer counts, `undefined` leaves the question to the person. A failure, an answer that does not fit
 * or one that comes too late is an error of the question, never a yes.
 */
export type Reviewer = (
  question: PendingQuestion,
  options: { readonly signal: AbortSignal },
) => Promise<QuestionAnswer | undefined>

/** Who decides about questions, as one value: it is replaced as a whole, so that nothing is ever decided by a mixture of two. */
export interface ElicitationAuthority {
  readonly trust: TrustPolicy
  /** In place of `trust` for the servers named here. */
  readonly trustOf?: Readonly<Record<string, TrustPolicy>>
  /** The servers that are in use; the questions of all others are declined. Absent: all. */
  readonly servers?: ReadonlySet<string>
  /** Show forms with fields to a person although nobody is asked for approvals. Default false. */
  readonly surfaceForms?: boolean
  readonly reviewer?: Reviewer
}

/** What an {@link Elicitation} is made of. */
export interface ElicitationInit {
  readonly policy: ElicitationAuthority
  readonly handlers?: HostHandlers
  readonly platform: Platform
  readonly emit: (event: HostEvent) => void
  readonly limits?: Partial<ElicitationLimits>
}

/** Limits of the questions of one host. */
export interface ElicitationLimits {
  /** Open questions of one server. Default 16. */
  readonly perServerMax: number
  /** Open questions in all. Default 256. */
  readonly questionsMax: number
  /** How long a question waits for `answer` while nobody is being shown it, in milliseconds. Default 600,000. Then it is cancelled. */
  readonly parkedMsMax: number
  /** How long the reviewer may take, in milliseconds. Default 60,000. */
  readonly reviewMsMax: number
}

const LIMITS: ElicitationLimits = { perServerMax: 16, questionsMax: 256, parkedMsMax: 600_000, reviewMsMax: 60_000 }
/** Outcomes that are kept for whoever asks why. */
const OUTCOMES_MAX = 256
const ID_RANDOM_BYTES = 9

const INVALID_PARAMS = -32602
const TOO_MANY = -32000

/** One counter for all hosts of a process: no two questions have one id, whatever the servers call them. */
let questionCount = 0

/** The questions of all servers of one host, over all of its connections, old ones included. */
export class Elicitation {
  readonly #handlers: HostHandlers
  readonly #platform: Platform
  readonly #emit: (event: HostEvent) => void
  readonly #limits: ElicitationLimits
  readonly #open: OpenQuestions
  readonly #outcomes: QuestionOutcome[] = []
  #authority: ElicitationAuthority
  #declinesAll = false

  constructor({ policy, handlers = {}, platform, emit, limits }: ElicitationInit) {
    this.#authority = policy
    this.#handlers = handlers
    this.#platform = platform
    this.#emit = emit
    this.#limits = { ...LIMITS, ...limits }
    this.#open = new OpenQuestions(this.#limits)
  }

  /** What there is somebody to answer for; servers are told exactly that. A reviewer is somebody. */
  get offers(): ClientOffers {
    const { elicit, sample, roots } = this.#handlers
    const hasAnswerer = elicit !== undefined || this.#authority.reviewer !== undefined
    return {
      elicitation: hasAnswerer ? 'form-and-url' : undefined,
      sampling: sample !== undefined,
      roots: roots !== undefined,
    }
  }

  /** The host's handlers for one server, by method. A method that is not here is not found. */
  handlersFor(server: string): RequestHandlers {
    const { elicit, sample, roots } = this.#handlers
    return {
      'elicitation/create': (params, context) => this.#serve(server, { params, context, ask: elicit }),
      ...(sample === undefined ? {} : { 'sampling/createMessage': guarded(sample) }),
      ...(roots === undefined ? {} : { 'roots/list': guarded(roots) }),
    }
  }

  /**
   * Handlers of somebody else, a call or a client with a connection of its own, under the policy of this host. Theirs for `elicitation/create` is an
   * {@link AskCallback}.
   */
  judge(server: string, own: Readonly<Record<string, AskCallback>>): RequestHandlers {
    return Object.fromEntries(
      Object.entries(own).map(([method, handler]): [string, ServerRequestHandler] => [
        method,
        method === 'elicitation/create'
          ? (params, context) => this.#serve(server, { params, context, ask: handler })
          : guarded(handler as ServerRequestHandler),
      ]),
    )
  }

  /** Would this question be shown to a person now? Asks nobody and counts for nothing. */
  leavesToPerson(server: string, params: JsonObject): boolean {
    const read = readQuestion(params)
    return read.kind === 'question' && this.#decide(server, read.facts, this.#authority).kind === 'ask'
  }

  /** The newest policy holds at once, for every connection; questions that are open and that it declines are declined now. */
  replacePolicy(policy: ElicitationAuthority): void {
    this.#authority = policy
    this.#declineWhatMust()
  }

  /** `on`: every question is declined, those that are open now and those that come, until it is switched off. */
  declineAll(on: boolean): void {
    this.#declinesAll = on
    this.#declineWhatMust()
  }

  /** Those that somebody may answer now, in the order in which they came. */
  questions(): readonly PendingQuestion[] {
    return this.#open.all.filter(({ stage }) => stage === 'asked').map(({ question }) => question)
  }

  /** How the last 256 questions ended, and why; the oldest first. */
  get outcomes(): readonly QuestionOutcome[] {
    return [...this.#outcomes]
  }

  /**
   * Answers an open question.
   * @throws {HostError} `QUESTION_UNKNOWN`: it is not open (any more); `ANSWER_INVALID`: the answer does not fit, and the question stays open.
   */
  answer(id: string, response: QuestionAnswer): void {
    const open = this.#open.get(id)
    if (open === undefined || open.stage !== 'asked')
      throw new HostError('QUESTION_UNKNOWN', 'There is no open question of this id', { details: { id } })
    const read = matchAnswer(response, open.question)
    if (read.kind === 'wrong')
      throw new HostError(
        'ANSWER_INVALID',
        `The answer to a question of server "${open.question.server}" does not fit: ${read.why}`,
        {
          details: { id, server: open.question.server },
        },
      )
    open.settle({ kind: 'answered', answer: read.answer, by: 'answer', reason: 'answered' })
  }

  /** Nobody is asked anything any more; what is open is cancelled. Idempotent. */
  close(): void {
    this.#declinesAll = true
    for (const open of this.#open.all) open.settle({ kind: 'withdrawn', by: 'host', reason: 'host-closed' })
  }

  async #serve(server: string, { params, context, ask }: Asking): Promise<JsonObject> {
    const read = readQuestion(params)
    const id = this.#nextId()
    if (read.kind === 'refused') {
      this.#tell({ id, server, mode: read.mode, action: 'none', by: 'policy', reason: 'malformed' })
      throw requestRefusal(INVALID_PARAMS, read.why)
    }
    if (read.kind === 'unsafe') {
      this.#tell({ id, server, mode: read.mode, action: 'decline', by: 'policy', reason: 'unsafe-address' })
      return { action: 'decline' }
    }
    const { content, facts } = read
    // Read once: whatever is swapped in while this question is on its way, nothing is decided by half of it.
    const authority = this.#authority
    const { kind, reason } = this.#decide(server, facts, authority)
    if (kind === 'decline' || kind === 'accept-empty') {
      const answer: QuestionAnswer = kind === 'decline' ? { action: 'decline' } : { action: 'accept', content: {} }
      this.#tell({ id, server, mode: facts.mode, action: answer.action, by: 'policy', reason })
      return { ...answer }
    }
    const open = this.#open.add({ ...content, id, server, askedAtMs: this.#platform.dateMs() }, facts)
    if (open === undefined) {
      this.#tell({ id, server, mode: facts.mode, action: 'none', by: 'policy', reason: 'too-many-questions' })
      throw requestRefusal(TOO_MANY, 'Too many questions are open')
    }
    const reviewer = kind === 'review' ? authority.reviewer : undefined
    return this.#untilSettled(open, { params: read.params, context, ask }, reviewer)
  }

  /** Removed the moment its request is taken back, its call is over or its connection ends: the signal of the request says so. */
  async #untilSettled(open: OpenQuestion, asking: Asking, reviewer: Reviewer | undefined): Promise<JsonObject> {
    const { signal } = asking.context
    const withdraw = (): void => void open.settle({ kind: 'withdrawn', by: 'server', reason: 'request-over' })
    signal.addEventListener('abort', withdraw, { once: true })
    if (signal.aborted) withdraw()
    void this.#conduct(open, asking, reviewer) // whatever it does, `settled` says how it ended
    const settlement = await open.settled
    signal.removeEventListener('abort', withdraw)
    this.#tell(outcomeOf(open.question, settlement))
    switch (settlement.kind) {
      case 'answered':
        return { ...settlement.answer }
      case 'withdrawn':
        return { action: 'cancel' }
      case 'failed':
        throw isRequestRefusal(settlement.error) ? settlement.error : couldNotAnswer()
      default:
        return unreachable(settlement, 'settlement')
    }
  }

  /** Never rejects. */
  async #conduct(open: OpenQuestion, asking: Asking, reviewer: Reviewer | undefined): Promise<void> {
    if (reviewer !== undefined) await this.#review(open, reviewer)
    if (open.isOver) return
    open.stage = 'asked'
    const { ask } = asking
    if (ask === undefined) return this.#park(open)
    this.#emit({ kind: 'question.asked', question: open.question })
    await this.#show(open, asking, ask)
  }

  async #review(open: OpenQuestion, reviewer: Reviewer): Promise<void> {
    const fail = (reason: string): boolean => open.settle({ kind: 'failed', error: undefined, by: 'reviewer', reason })
    const timer = this.#timer(() => fail('review-timed-out'), this.#limits.reviewMsMax)
    const stop = (): void => this.#platform.clearTimer(timer)
    open.signal.addEventListener('abort', stop, { once: true })
    try {
      const read = readReview(await reviewer(open.question, { signal: open.signal }), open.question)
      if (read.kind === 'wrong') fail('review-unusable')
      if (read.kind === 'answer')
        open.settle({ kind: 'answered', answer: read.answer, by: 'reviewer', reason: 'reviewed' })
    } catch {
      fail('review-failed')
    } finally {
      stop()
    }
  }

  async #show(open: OpenQuestion, { params, context }: Asking, ask: AskCallback): Promise<void> {
    try {
      const given = await ask(params, { ...context, signal: open.signal, question: open.question })
      if (open.isOver) return
      if (given === undefined) return this.#park(open)
      const read = readAnswer(given)
      if (read.kind === 'answer') open.settle({ kind: 'answered', answer: read.answer, by: 'ask', reason: 'answered' })
      else open.settle({ kind: 'failed', error: undefined, by: 'ask', reason: 'answer-unusable' })
    } catch (error) {
      open.settle({ kind: 'failed', error, by: 'ask', reason: 'ask-failed' })
    }
  }

  /** Waits for `answer`, for a while. */
  #park(open: OpenQuestion): void {
    const { parkedMsMax } = this.#limits
    open.question = { ...open.question, expiresAtMs: this.#platform.dateMs() + parkedMsMax }
    const timer = this.#timer(
      () => open.settle({ kind: 'answered', answer: { action: 'cancel' }, by: 'time', reason: 'parked-too-long' }),
      parkedMsMax,
    )
    open.signal.addEventListener('abort', () => this.#platform.clearTimer(timer), { once: true })
    this.#emit({ kind: 'question.asked', question: open.question })
  }

  #timer(run: () => void, ms: number): TimerHandle {
    return this.#platform.setTimer(run, ms, 'background')
  }

  #declineWhatMust(): void {
    for (const open of this.#open.all) {
      const { kind, reason } = this.#decide(open.question.server, open.facts, this.#authority)
      if (kind !== 'decline') continue
      open.settle({ kind: 'answered', answer: { action: 'decline' }, by: 'policy', reason })
    }
  }

  #decide(server: string, facts: QuestionFacts, authority: ElicitationAuthority): ElicitationDecision {
    const { trustOf = {}, trust, servers, surfaceForms = false, reviewer } = authority
    const isInUse = servers === undefined || servers.has(server)
    const own = Object.hasOwn(trustOf, server) ? trustOf[server] : trust
    return decideElicitation(facts, {
      declinesAll: this.#declinesAll,
      trust: isInUse ? own : undefined,
      surfaceForms,
      hasReviewer: reviewer !== undefined,
    })
  }

  #nextId(): string {
    questionCount += 1
    return `question-${questionCount}-${this.#platform.randomBytes(ID_RANDOM_BYTES).toString('hex')}`
  }

  #tell(outcome: QuestionOutcome): void {
    this.#outcomes.push(outcome)
    if (this.#outcomes.length > OUTCOMES_MAX) this.#outcomes.shift()
    this.#emit({ kind: 'question.settled', outcome })
  }
}

/** Answers to what servers ask, by method. */
export type RequestHandlers = Readonly<Record<string, ServerRequestHandler>>

/** One request of a server, and who may show it to a person. */
interface Asking {
  readonly params: JsonObject
  readonly context: ServerRequestContext
  readonly ask: AskCallback | undefined
}

function outcomeOf({ id, server, mode }: PendingQuestion, settlement: Settlement): QuestionOutcome {
  const { by, reason } = settlement
  return { id, server, mode, action: settlement.kind === 'answered' ? settlement.answer.action : 'none', by, reason }
}
