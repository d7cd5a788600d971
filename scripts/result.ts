// How a script tells the whole run what it counted: one JSON file, named by the environment.
import { writeFile } from 'node:fs/promises'

/** Writes the counts where `CONVOKE_RESULT_FILE` says, with a line per failure, and sets the exit code. */
export async function report(passed: number, failed: number, failures: readonly string[] = []): Promise<void> {
  const file = process.env['CONVOKE_RESULT_FILE']
  if (file !== undefined) await writeFile(file, JSON.stringify({ passed, failed, failures }))
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1
}
