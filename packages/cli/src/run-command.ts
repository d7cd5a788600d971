// Runs one command: options to context, outcome to exit code. Nothing below this file ends the process.

import { isatty } from 'node:tty'
import { HostError } from '@convoke/host'
import { CommandError, usageError } from './command-error.ts'
import { commandErrorOf } from './commands/host-errors.ts'
import { type CommandContext, JSON_VERSION } from './context.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { runProgram } from './program.ts'
import { styled, Terminal } from './terminal.ts'

/** Only asked what it is: opening it as a stream would take a twentieth of the time of a short command. */
const STDIN = {
  get isTTY(): boolean {
    return isatty(0)
  },
}

/** Runs the command of this process and gives its exit code. */
export async function runCommand(words: readonly string[]): Promise<ExitCode> {
  const { stdout, stderr, env } = process
  const ending = new AbortController()
  const unlisten = listenForEnd(ending)
  const output = watchOutput()
  const makeTerminal = (color: boolean): Terminal => new Terminal({ env, stdin: STDIN, stdout, stderr, color })
  let context: CommandContext | undefined
  let command = words.find((word) => !word.startsWith('-'))
  const run = (): Promise<ExitCode> =>
    runProgram(words, {
      makeContext: (name, { color, ...options }) => {
        command = name
        context = { options, terminal: makeTerminal(color), env, signal: ending.signal }
        return context
      },
      writeOut: (text) => void stdout.write(text),
    })
  try {
    const code = await run()
    await output.written()
    return code
  } catch (error) {
    const terminal = context?.terminal ?? makeTerminal(true)
    // A command line that could not be read says itself whether it wants JSON.
    const isJson = context?.options.json ?? words.includes('--json')
    return tellError(error, terminal, { isJson, command, ending })
  } finally {
    unlisten()
  }
}

interface Output {
  /** Resolves when everything has been written. @throws {CommandError} exit code 7 when some of it could not be. */
  written(): Promise<void>
}

/** A reader that has gone (`| head`) is no failure of ours; the command still ends in order. A full disk is told. */
function watchOutput(): Output {
  const { stdout, stderr } = process
  let fault: string | undefined
  stdout.on('error', ({ code = 'unknown error' }: NodeJS.ErrnoException) => {
    if (code !== 'EPIPE') fault ??= code
  })
  stderr.on('error', () => {})
  return {
    async written() {
      await new Promise<void>((resolve) => stdout.write('', () => resolve()))
      if (fault === undefined) return
      throw new CommandError(EXIT.failed, 'OUTPUT_FAILED', `The answer could not be written (${fault}).`)
    },
  }
}

interface ErrorFacts {
  readonly isJson: boolean
  readonly command: string | undefined
  readonly ending: AbortController
}

function tellError(error: unknown, terminal: Terminal, { isJson, command, ending }: ErrorFacts): ExitCode {
  const known = ending.signal.aborted ? CANCELLED : asCommandError(error)
  const { exitCode, code, message } = known
  if (isJson && command === 'call') {
    const outcome = exitCode === EXIT.unknownOutcome ? 'unknown' : 'failed'
    terminal.json({ version: JSON_VERSION, outcome, content: [], error: { code, message } })
  } else if (isJson) terminal.json({ version: JSON_VERSION, error: { code, message } })
  terminal.notice(styled('red', 'error: '), message)
  return exitCode
}

const CANCELLED = new CommandError(EXIT.cancelled, 'CANCELLED', 'cancelled')

function asCommandError(error: unknown): CommandError {
  if (CommandError.is(error)) return error
  if (HostError.is(error)) return commandErrorOf(error)
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof Error && 'syscall' in error && error.syscall === 'uv_cwd') {
    return usageError('The working directory no longer exists. Change to another one.')
  }
  return new CommandError(EXIT.failed, 'INTERNAL', `This is a fault of convoke itself: ${message}`)
}

/** Ctrl-C comes twice where a parent process hands it on as well; that is one wish, in milliseconds. */
const SAME_WISH_MS = 300

/** The first signal ends the command in order, a later one at once. */
function listenForEnd(ending: AbortController): () => void {
  let firstAtMs = 0
  const onSignal = (): void => {
    if (!ending.signal.aborted) {
      firstAtMs = performance.now()
      ending.abort(CANCELLED)
    } else if (performance.now() - firstAtMs > SAME_WISH_MS) process.exit(EXIT.cancelled)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const
  for (const signal of signals) process.on(signal, onSignal)
  return () => {
    for (const signal of signals) process.off(signal, onSignal)
  }
}
