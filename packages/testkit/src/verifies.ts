import { test } from 'vitest'
import { requirements } from './requirements.ts'

const texts = new Map(requirements.map(({ id, text }) => [id, text]))

/**
 * A test that stands for one or more requirements; its title is their text. The gate reads the ids from the source, so write them as literals.
 * @throws {Error} for an id that the manifest does not know.
 */
export function verifies(ids: string | readonly string[], body: () => void | Promise<void>, timeoutMs?: number): void {
  const list = typeof ids === 'string' ? [ids] : ids
  const title = list.map((id) => {
    const text = texts.get(id)
    if (text === undefined) throw new Error(`requirements.ts has no "${id}"`)
    return `${text} (${id})`
  })
  test(title.join('; '), body, timeoutMs)
}
