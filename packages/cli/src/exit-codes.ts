/** How a run of the command ended, for the shell. Documented in `docs/command.md` and in `convoke --help`; frozen by a test. */
export const EXIT: {
  readonly ok: 0
  readonly toolError: 1
  readonly usage: 2
  readonly notAvailable: 3
  readonly configuration: 4
  readonly needsPerson: 5
  readonly unknownOutcome: 6
  readonly failed: 7
  readonly cancelled: 130
} = {
  ok: 0,
  toolError: 1,
  usage: 2,
  notAvailable: 3,
  configuration: 4,
  needsPerson: 5,
  unknownOutcome: 6,
  failed: 7,
  cancelled: 130,
}

/** One of {@link EXIT}. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** The codes with their meaning, for help texts. */
export const EXIT_MEANINGS: readonly (readonly [ExitCode, string])[] = [
  [0, 'it worked; also a listing that not every server answered'],
  [1, 'the tool ran and reported an error'],
  [2, 'the command line is wrong, or names something that does not exist'],
  [3, 'a server that is needed is not available; with --strict any server'],
  [4, 'no configuration could be used, or this Node cannot be'],
  [5, 'a person is needed: sign-in, approval or input'],
  [6, 'the call was sent and its outcome is not known'],
  [7, 'the call or the command failed'],
  [130, 'cancelled (Ctrl-C or SIGTERM)'],
]
