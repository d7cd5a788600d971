// What is done to a host, as data: a list that is made from a seed before anything runs, so that a failing one can be repeated and shortened.
import { Random } from './random.ts'

/** Everything that can be done, with how likely it is. */
export const STEP_KINDS = {
  /** Lets a few things happen. */
  run: 260,
  /** Lets a little time pass. */
  pass: 90,
  /** Lets much time pass at once: a laptop that slept. */
  jump: 12,
  bind: 70,
  dispose: 50,
  call: 150,
  'call-direct': 30,
  'call-prepared': 20,
  abort: 20,
  list: 14,
  'list-tools': 10,
  'configure-add': 18,
  'configure-remove': 12,
  'configure-filter': 14,
  'configure-target': 10,
  'configure-toggle': 10,
  'configure-options': 8,
  refresh: 14,
  reconnect: 26,
  'reconnect-next': 4,
  'wait-settled': 24,
  'require-ready': 6,
  'cancel-startup': 10,
  observe: 20,
  'open-dedicated': 8,
  'close-dedicated': 8,
  mood: 60,
  crash: 26,
  'change-tools': 24,
  forget: 14,
  cut: 14,
  variable: 6,
  policy: 8,
  account: 6,
  disk: 3,
  heal: 5,
  restart: 5,
} as const

export type StepKind = keyof typeof STEP_KINDS

/** One thing that is done. Its numbers choose among what there is when its turn comes; its seed decides what the world does meanwhile. */
export interface Step {
  readonly kind: StepKind
  readonly a: number
  readonly b: number
  readonly seed: number
  /** The next step follows in the same turn, after so many microtasks; undefined: after everything that follows at once. */
  readonly together?: number
}

const TOGETHER_PERCENT = 22
const MICROTASKS_MAX = 6

/** The steps of a seed, one by one. */
export function* stepsOf(seed: number, count: number): Generator<Step> {
  const random = new Random(seed ^ 0x5eed)
  for (let index = 0; index < count; index++) {
    const kind = random.weighted<StepKind>(STEP_KINDS)
    const [a, b, own] = [random.next(), random.next(), random.next()]
    const together = random.chance(TOGETHER_PERCENT) ? random.below(MICROTASKS_MAX) : undefined
    yield { kind, a, b, seed: own, ...(together === undefined ? {} : { together }) }
  }
}
