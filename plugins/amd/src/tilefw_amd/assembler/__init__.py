"""Files of assembly text: lines, directives, sections."""
