"""Plans, and what they cost: subscriptions, the closing of months, invoices, credit notes, mails about money."""
