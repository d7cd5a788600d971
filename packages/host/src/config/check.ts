// Judges one entry that is not in a file yet.

import { homedir } from 'node:os'
import type { JsonObject } from '../base/index.ts'
import type { ConfigProblem } from './definition.ts'
import { parseDocument, propertiesOf } from './document.ts'
import { readEntry } from './entry.ts'
import { ProblemList } from './problems.ts'
import { serverNameFault } from './server-names.ts'

/** Characters that expansion may produce for one entry. */
const EXPANDED_ENTRY_CHARS_MAX = 4 * 1024 * 1024

/**
 * What would be wrong with `entry` under `name`; empty when nothing is. Places in the problems are meaningless: there is no file.
 * Nothing is written and nothing is started.
 */
export function checkServer(
  name: string,
  entry: JsonObject,
  options: { readonly env?: Readonly<Record<string, string | undefined>> } = {},
): readonly ConfigProblem[] {
  const document = parseDocument(JSON.stringify({ [name]: entry }))
  const problems = new ProblemList('new entry', () => ({ line: 0, column: 0 }))
  const fault = serverNameFault(name)
  if (fault !== undefined)
    problems.report({ severity: 'error', code: 'CONFIG_NAME_INVALID', text: `the server name ${fault}` })
  for (const property of propertiesOf(document.root)) {
    readEntry(property, {
      document,
      problems,
      facts: { env: options.env ?? process.env, homeDirectory: homedir() },
      budget: { charsLeft: EXPANDED_ENTRY_CHARS_MAX },
      file: 'new entry',
      folder: process.cwd(),
      layer: 'user',
    })
  }
  return problems.all()
}
