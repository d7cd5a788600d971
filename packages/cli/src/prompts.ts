// Forms and links on a terminal. Loaded only when a server asks; never without a terminal.

import { confirm, isCancel, multiselect, select, text } from '@clack/prompts'
import { cleanLine, type JsonObject } from '@convoke/host'
import { isRecord } from './signature.ts'
import { styled, type Terminal } from './terminal.ts'

/** Fields of one form; a longer one is declined. */
const FIELDS_MAX = 50

/** Thrown when the person leaves the form. */
const LEFT: unique symbol = Symbol('left')

/** Yes or no; the end of the prompt means no. */
export async function askYes(message: string, initialValue: boolean, signal: AbortSignal): Promise<boolean> {
  return (await confirm({ message, initialValue, ...outputs(signal) })) === true
}

/** Asks for every field of a form. Escape or Ctrl-C cancels it; "no" at the end declines. */
export async function askForm(params: JsonObject, terminal: Terminal, signal: AbortSignal): Promise<JsonObject> {
  const schema = isRecord(params['requestedSchema']) ? params['requestedSchema'] : {}
  const properties = isRecord(schema['properties']) ? Object.entries(schema['properties']) : []
  const required = new Set(Array.isArray(schema['required']) ? schema['required'] : [])
  if (properties.length > FIELDS_MAX) return { action: 'decline' }
  const content: [string, unknown][] = []
  for (const [name, field] of properties) {
    const answer = await askField({
      name,
      field: isRecord(field) ? field : {},
      isRequired: required.has(name),
      terminal,
      signal,
    })
    if (answer === LEFT) return { action: 'cancel' }
    if (answer !== undefined) content.push([name, answer])
  }
  const isSent = await confirm({ message: 'Send this to the server?', initialValue: true, ...outputs(signal) })
  if (isCancel(isSent)) return { action: 'cancel' }
  return isSent ? { action: 'accept', content: Object.fromEntries(content) } : { action: 'decline' }
}

/** Shows an address that the server wants opened. Nothing is opened or fetched here. */
export async function askUrl(params: JsonObject, terminal: Terminal, signal: AbortSignal): Promise<JsonObject> {
  const given = typeof params['url'] === 'string' ? params['url'] : ''
  const url = URL.canParse(given) ? new URL(given) : undefined
  const isLoopback = url !== undefined && ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)
  const isFit = url !== undefined && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback))
  if (!isFit || url.username !== '' || url.password !== '') {
    terminal.notice(styled('red', 'declined: '), 'the address is not one that can be opened safely')
    return { action: 'decline' }
  }
  terminal.notice('Open this address yourself if you trust ', styled('bold', url.host), ':')
  terminal.notice('  ', url.href)
  const isDone = await confirm({ message: 'Tell the server that you will?', initialValue: false, ...outputs(signal) })
  if (isCancel(isDone)) return { action: 'cancel' }
  return { action: isDone ? 'accept' : 'decline' }
}

interface FieldQuestion {
  readonly name: string
  readonly field: JsonObject
  readonly isRequired: boolean
  readonly terminal: Terminal
  readonly signal: AbortSignal
}

const outputs = (signal: AbortSignal): { output: NodeJS.WriteStream; signal: AbortSignal } => ({
  output: process.stderr,
  signal,
})

async function askField(question: FieldQuestion): Promise<unknown> {
  const { name, field, isRequired, terminal, signal } = question
  const label = cleanLine(typeof field['title'] === 'string' ? field['title'] : name, 80)
  const about = typeof field['description'] === 'string' ? ` (${cleanLine(field['description'], 200)})` : ''
  if (/pass(word|phrase)|secret|token|api.?key/i.test(`${name} ${label}`)) {
    terminal.notice(
      styled('yellow', 'careful: '),
      'servers must not ask for passwords or keys in a form; leave it if in doubt',
    )
  }
  const message = `${label}${about}${isRequired ? '' : ' (optional)'}`
  const choices = choicesOf(field)
  if (field['type'] === 'boolean')
    return left(await confirm({ message, initialValue: field['default'] === true, ...outputs(signal) }))
  if (choices.length > 0 && field['type'] === 'array') {
    return left(await multiselect({ message, options: choices, required: isRequired, ...outputs(signal) }))
  }
  if (choices.length > 0) {
    const skip = isRequired ? [] : [{ value: '', label: '(leave out)' }]
    const answer = left(await select({ message, options: [...choices, ...skip], ...outputs(signal) }))
    return answer === '' ? undefined : answer
  }
  return askText(question, message)
}

async function askText({ field, isRequired, signal }: FieldQuestion, message: string): Promise<unknown> {
  const type = field['type']
  const initial = field['default'] === undefined ? {} : { initialValue: cleanLine(String(field['default'])) }
  const answer = await text({
    message,
    ...initial,
    ...outputs(signal),
    validate: (value = '') => (value === '' ? (isRequired ? 'needed' : undefined) : faultOf(value, field)),
  })
  if (isCancel(answer)) return LEFT
  if (answer === undefined || answer === '') return undefined
  return type === 'number' || type === 'integer' ? Number(answer) : answer
}

function faultOf(value: string, field: JsonObject): string | undefined {
  const { type } = field
  if (type !== 'number' && type !== 'integer') {
    return outside(value.length, limitAt(field, 'minLength'), limitAt(field, 'maxLength'), ' characters')
  }
  const number = Number(value)
  if (!Number.isFinite(number) || value.trim() === '') return 'a number'
  if (type === 'integer' && !Number.isInteger(number)) return 'a whole number'
  return outside(number, limitAt(field, 'minimum'), limitAt(field, 'maximum'), '')
}

function limitAt(field: JsonObject, key: string): number | undefined {
  const value = field[key]
  return typeof value === 'number' ? value : undefined
}

function outside(value: number, min: number | undefined, max: number | undefined, unit: string): string | undefined {
  if (min !== undefined && value < min) return `at least ${min}${unit}`
  return max !== undefined && value > max ? `at most ${max}${unit}` : undefined
}

function choicesOf(field: JsonObject): { value: string; label: string }[] {
  const source = field['type'] === 'array' && isRecord(field['items']) ? field['items'] : field
  const titled = source['oneOf'] ?? source['anyOf']
  if (Array.isArray(titled)) {
    return titled.flatMap((option) =>
      isRecord(option) && typeof option['const'] === 'string'
        ? [{ value: option['const'], label: cleanLine(String(option['title'] ?? option['const'])) }]
        : [],
    )
  }
  const names = Array.isArray(source['enumNames']) ? source['enumNames'] : []
  return Array.isArray(source['enum'])
    ? source['enum'].map((value, index) => ({ value: String(value), label: cleanLine(String(names[index] ?? value)) }))
    : []
}

function left<Value>(answer: Value | symbol): Value | typeof LEFT {
  return isCancel(answer) ? LEFT : (answer as Value)
}
