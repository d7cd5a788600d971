import type { CommandContext } from '../context.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'

/** What `convoke serve` takes. */
export interface ServeCommandOptions {
  readonly http?: string
  readonly stdio?: boolean
  readonly tokenEnv?: string
  readonly requireToken?: boolean
  readonly transparent?: string
}

export async function runServe(_context: CommandContext, _options: ServeCommandOptions): Promise<ExitCode> {
  return EXIT.failed
}
