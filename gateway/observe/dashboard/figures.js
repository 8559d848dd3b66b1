/** What one record says of its tokens. Sums are the gateway's: `api/sums`. */

export const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Prompt tokens as the client sent them: counted, or where the size was proof enough, as billed. */
export const asked = (record) => record.tokens_before ?? record.prompt_tokens;

/** Prompt tokens as they were forwarded; in mode observe nothing was changed. */
export const sentOn = (record) => (record.mode === "observe" ? asked(record) : record.tokens_after ?? asked(record));
