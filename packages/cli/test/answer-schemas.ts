// The documented shapes of the command's answers.
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { Validator } from '@cfworker/json-schema'

/** Where they lie. */
export const SCHEMAS: string = resolve(import.meta.dirname, '../schemas')

/** What is wrong with an answer; empty when nothing is. */
export async function faultsOf(schema: string, text: string): Promise<unknown> {
  const parsed = JSON.parse(await readFile(join(SCHEMAS, `${schema}.schema.json`), 'utf8')) as object
  const { valid, errors } = new Validator(parsed, '2020-12', false).validate(JSON.parse(text))
  return valid ? [] : errors
}
