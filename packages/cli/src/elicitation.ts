// Answers to what a server asks a person while a call runs.

import { type AskCallback, cleanLine, cleanText, type HostEventListener, type JsonObject } from '@convoke/host'
import type { CommandContext } from './context.ts'
import { isRecord } from './signature.ts'
import { styled } from './terminal.ts'

/**
 * Asks the person on a terminal. Without one, forms are answered from `answers` (the JSON of --answers) and everything else is
 * declined, with a notice that names the option.
 */
export function elicitationHandler(context: CommandContext, answers: JsonObject | undefined): AskCallback {
  const { terminal } = context
  return async (params, { signal, question }) => {
    const { server } = question
    const message = typeof params['message'] === 'string' ? params['message'] : ''
    const isUrl = params['mode'] === 'url'
    if (answers !== undefined && !isUrl) return { action: 'accept', content: answersFor(answers, params) }
    if (!terminal.isInteractive) {
      const way = isUrl ? 'Run this on a terminal to answer.' : 'Pass --answers JSON, or run this on a terminal.'
      const asks = `${cleanLine(server)} asks: ${cleanLine(message)}`
      terminal.notice(styled('yellow', 'declined: '), `${asks} (no terminal to ask on). ${way}`)
      return { action: 'decline' }
    }
    terminal.clearTransient()
    terminal.notice(styled('bold', cleanLine(server)), ' asks: ', cleanText(message).text)
    if (question.secretFields.length > 0)
      terminal.notice(
        styled('yellow', 'warning: '),
        `a form must not ask for secrets, and this one asks for ${question.secretFields.map((name) => cleanLine(name)).join(', ')}`,
      )
    const { askForm, askUrl } = await import('./prompts.ts')
    return isUrl ? askUrl(params, terminal, signal) : askForm(params, terminal, signal)
  }
}

/** Tells of addresses that were declined before anybody was asked. */
export function declinedNotice({ terminal }: CommandContext): HostEventListener {
  return (event) => {
    if (event.kind !== 'question.settled' || event.outcome.reason !== 'unsafe-address') return
    const what = 'asks to open an address that cannot be opened safely'
    terminal.notice(styled('red', 'declined: '), `${cleanLine(event.outcome.server)} ${what}`)
  }
}

/** Only what the form asks for leaves; other members of --answers stay here. */
function answersFor(prepared: JsonObject, params: JsonObject): JsonObject {
  const schema = params['requestedSchema']
  const properties = isRecord(schema) && isRecord(schema['properties']) ? schema['properties'] : {}
  return Object.fromEntries(Object.entries(prepared).filter(([key]) => Object.hasOwn(properties, key)))
}
