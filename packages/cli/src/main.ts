// The entry: runs the command of this process, and ends it with its exit code once everything is written.
import { EXIT } from './exit-codes.ts'
import { runCommand } from './run-command.ts'

/** A fault of ours must not look like an error of a tool, which is what Node's own exit code 1 would mean here. */
function endWithFault(error: unknown): void {
  process.stderr.write(`convoke: ${error instanceof Error ? error.stack : String(error)}\n`)
  process.exit(EXIT.failed)
}

process.on('uncaughtException', endWithFault)
// A command ends by itself, below. Without anything left to wait for it would end here as if it had worked.
process.on('beforeExit', () => endWithFault(new Error('the command has come to no end')))
runCommand(process.argv.slice(2)).then((code) => {
  // Nothing of ours is left running, and what a dependency forgot must not keep the shell waiting.
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)))
}, endWithFault)
