// Writes the JSON Schema of convoke.json from the one definition of the fields. `--check` only compares.
import './assert-node.ts'
import { readFile, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { configSchema } from '@convoke/host'

const file = resolve(import.meta.dirname, '../packages/host/convoke.schema.json')
const wanted = `${JSON.stringify(configSchema(), null, 2)}\n`
if (!process.argv.includes('--check')) await writeFile(file, wanted)
else if ((await readFile(file, 'utf8').catch(() => '')) !== wanted) {
  process.stderr.write('packages/host/convoke.schema.json is not current: run npm run schema\n')
  process.exitCode = 1
}
