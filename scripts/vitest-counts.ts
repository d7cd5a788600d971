import type { Reporter, TestModule } from 'vitest/node'
import { report } from './result.ts'

/** Tells the whole run how many tests passed and failed. A file that fails outside of its tests counts as one failure. */
export default class CountsReporter implements Reporter {
  async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    const exitCode = process.exitCode
    let passed = 0
    let failed = 0
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        if (test.result().state === 'passed') passed++
        else failed++
      }
      if (module.state() === 'failed' && module.errors().length > 0) failed++
    }
    await report(passed, failed)
    process.exitCode = exitCode
  }
}
