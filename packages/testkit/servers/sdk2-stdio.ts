// The fixture on SDK v2 over stdio. `--era both|modern`
import { parseArgs } from 'node:util'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { createFixture } from '../conformance/fixture-factory.ts'

const { values: options } = parseArgs({ options: { era: { type: 'string', default: 'both' } } })
serveStdio(createFixture().build, { legacy: options.era === 'modern' ? 'reject' : 'serve' })
process.stdin.once('end', () => process.exit(0))
