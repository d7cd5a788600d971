/** Text of a foreign process that people will read: without escape sequences and control characters, except line feeds and tabs. */
export function cleanText(text: string): string {
  return (
    text
      // Whole escape sequences first, so that no "[31m" stays behind.
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
      .replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]{0,4096}(?:\u0007|\u001b\\)|[@-Z\\-_])/g, '')
      .replace(/\r\n?/g, '\n')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
      .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, '')
  )
}
