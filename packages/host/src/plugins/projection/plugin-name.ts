// The name of a plugin where people and models read it. It stands in backticks in descriptions of tools, and must not end them. Pure.
import { cleanText } from '../../base/index.ts'

/** Longest name that is shown, in code points. */
export const PLUGIN_NAME_CHARS_MAX = 64

/** One line without backticks and what nobody can see, cut to 64 code points; empty when nothing is left. */
export function shownPluginName(displayName: string): string {
  const line = cleanText(displayName).text.replaceAll('`', '').replace(/\s+/gu, ' ').trim()
  return [...line].slice(0, PLUGIN_NAME_CHARS_MAX).join('').trimEnd()
}
