// The entry: runs the command of this process, and ends it with its exit code once everything is written.
import { runCommand } from './run-command.ts'

runCommand(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code
    // Nothing of ours is left running, and what a dependency forgot must not keep the shell waiting.
    process.stdout.write('', () => process.stderr.write('', () => process.exit(code)))
  },
  (error: unknown) => {
    process.stderr.write(`convoke: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(7)
  },
)
