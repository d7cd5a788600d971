import type { Reporter, TestModule } from 'vitest/node'
import { report } from './result.ts'

const FAILURE_CHARACTERS = 600

/** The first lines of an error: enough to know what was expected where only the end of a log is kept. */
function brief(message: string | undefined): string {
  return (message ?? 'no message').slice(0, FAILURE_CHARACTERS).replaceAll('\n', '\n    ')
}

/** Tells the whole run how many tests passed and which failed. A file that fails outside of its tests counts as one failure. */
export default class CountsReporter implements Reporter {
  async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    const exitCode = process.exitCode
    let passed = 0
    const failures: string[] = []
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const result = test.result()
        if (result.state === 'passed') passed++
        else {
          const said = result.state === 'failed' ? brief(result.errors[0]?.message) : 'did not run'
          failures.push(`${module.relativeModuleId} > ${test.fullName}: ${said}`)
        }
      }
      const [error] = module.errors()
      if (module.state() === 'failed' && error !== undefined) {
        failures.push(`${module.relativeModuleId}: ${brief(error.message)}`)
      }
    }
    await report(passed, failures.length, failures)
    process.exitCode = exitCode
  }
}
